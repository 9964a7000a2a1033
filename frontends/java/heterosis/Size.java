package heterosis;

/** An extent that arrays of a program may have any number for, within bounds. */
public record Size(String name, long least, long most) {}
