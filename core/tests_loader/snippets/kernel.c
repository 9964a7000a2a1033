/* Touches every kind of section and reference that a compiled kernel may have. */
#include <stddef.h>
#include <stdint.h>

void* memcpy(void*, const void*, size_t);
int64_t host_add(int64_t, int64_t);
extern int64_t host_value;

static const double weights[4] = {1.5, 2.5, 3.5, 4.5};
static int64_t calls = 40;
static int64_t scratch[1000];
int64_t exported_data = 7;

static int64_t twice(int64_t x) { return 2 * x; }
static int64_t thrice(int64_t x) { return 3 * x; }
static int64_t (*volatile const table[])(int64_t) = {twice, thrice};

int64_t add_far(int64_t a, int64_t b) { return host_add(a, b) + 1; }
int64_t read_far(void) { return host_value; }
double weight(int64_t i) { return weights[i]; }
int64_t apply(int64_t which, int64_t x) { return table[which](x); }
int64_t count_calls(void) { return ++calls; }
int64_t copy_through(const int64_t* from, int64_t n) {
  memcpy(scratch, from, (size_t)n * sizeof *from);
  return scratch[n - 1] + scratch[999];
}
const char* name(int64_t which) {
  switch (which) { /* a jump table or a table of addresses */
    case 0: return "zero";
    case 1: return "one";
    case 2: return "two";
    case 3: return "three";
    case 4: return "four";
    default: return "many";
  }
}
