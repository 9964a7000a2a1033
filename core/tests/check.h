// The few words that tests need: a check that says where it failed, tests in a table, a stopwatch.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <thread>

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

#define CHECK_THROWS(Exception, statement) \
  do {                                     \
    bool thrown = false;                   \
    try {                                  \
      statement;                           \
    } catch (const Exception&) {           \
      thrown = true;                       \
    }                                      \
    CHECK(thrown && #statement);           \
  } while (false)

struct Test {
  const char* name;
  void (*run)();
};

inline int run_tests(std::initializer_list<Test> tests) {
  for (const Test& test : tests) {
    std::printf("%s\n", test.name);
    std::fflush(stdout);
    try {
      test.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s threw: %s\n", test.name, error.what());
      return 1;
    }
  }
  return 0;
}

#define TEST(name) Test{#name, name}

inline void sleep_milliseconds(int count) {
  std::this_thread::sleep_for(std::chrono::milliseconds(count));
}

// Waits for something that another thread will do; a test that hangs fails by its time limit.
template <typename Condition>
void until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}
