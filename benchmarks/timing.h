/* How programs in C time their calls: as runner.py does, the median of five batches of 20 ms. */
#ifndef TIMING_H
#define TIMING_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 5 };

static void stop(const char* why) {
  fprintf(stderr, "%s\n", why ? why : "unknown");
  exit(1);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double batch(void (*call)(void), long count) {
  const double begin = seconds();
  long i;
  for (i = 0; i < count; ++i) call();
  return seconds() - begin;
}

static int in_order(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double seconds_a_call(void (*call)(void)) {
  double found[BATCHES];
  long count = 1;
  int i;
  batch(call, 3);
  while (batch(call, count) < 0.02) count *= 2;
  for (i = 0; i < BATCHES; ++i) found[i] = batch(call, count) / (double)count;
  qsort(found, BATCHES, sizeof found[0], in_order);
  return found[BATCHES / 2];
}

static long resident_kilobytes(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  long found = -1;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "VmRSS: %ld", &found) == 1) break;
  }
  if (file) fclose(file);
  return found;
}

/* What was measured, as JSON. The memory is that after the first call. */
static void report(double first, long kilobytes, void (*call)(void)) {
  printf("{\"seconds\": %.9g, \"first\": %.9g, \"kilobytes\": %ld}\n", seconds_a_call(call), first,
         kilobytes);
}

#endif /* TIMING_H */
