int nobody_defines_this(void);
int call_unknown(void) { return nobody_defines_this() + 1; }
