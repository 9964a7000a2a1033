package heterosis;

/** A library that cannot be used, or a program that has failed. */
public final class LibraryError extends RuntimeException {
  private static final long serialVersionUID = 1;

  public LibraryError(String message) {
    super(message);
  }
}
