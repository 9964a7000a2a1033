// HETEROSIS_LIBRARY=libmy_mlp.so ... ./library_test; ../README.md says which libraries the variables
// name.
// c++ -std=c++20 library_test.cpp -I. -ldl -o library_test
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>

#include "heterosis.hpp"

namespace {

using heterosis::inputs;
using heterosis::outputs;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

template <class Work>
void fails(Work&& work, const std::string& why) {
  try {
    work();
  } catch (const heterosis::Error& error) {
    expect(std::string(error.what()).find(why) != std::string::npos, error.what());
    return;
  }
  expect(false, "no error: " + why);
}

void tells_what_there_is(const heterosis::Library& mlp) {
  const heterosis::Entry forward = mlp.entry(0);
  expect(mlp.name() == "my_mlp" && mlp.entries() == 1 && mlp.sizes(0).empty(), "the library");
  expect(forward.inputs().at(0).name == "x", "a name");
  expect(forward.inputs().at(0).shape == std::vector<int64_t>{1, 512}, "a shape");
  expect(forward.outputs().at(0).dtype == HETEROSIS_FLOAT32, "a type");
}

void runs(const heterosis::Library& mlp) {
  heterosis::Entry forward = mlp.entry(0);
  const std::vector<float> x(512, 0.5f);
  std::vector<float> scores(2);
  std::array<float, 4> wider{};
  forward.run(inputs(x), outputs(scores));
  auto middle = std::span(wider).subspan(1, 2);
  forward.run(inputs(std::span(x)), outputs(middle));
  expect(wider == std::array<float, 4>{0, scores[0], scores[1], 0}, "the memory of a span");
  std::vector<double> doubles(512);
  std::vector<float> longer(513);
  fails([&] { forward.run(inputs(doubles), outputs(scores)); }, "x: got 4096 bytes");
  fails([&] { forward.run(inputs(longer), outputs(scores)); }, "expected 2048");
  fails([&] { forward.run(inputs(), outputs(scores)); }, "got 0 inputs; expected 1");
  fails([&] { mlp.entry(1); }, "there is no such entry");
  fails([&] { heterosis::Pool(mlp, 2); }, "got 2 threads; expected 1 to 1");
}

void runs_at_sizes(const heterosis::Library& sized) {
  expect(sized.sizes(0).at(0).name == "n0", "the name of a size");
  heterosis::Entry three = sized.entry(0, {3});
  expect(three.outputs().at(0).shape == std::vector<int64_t>{3, 2}, "a shape at a size");
  const std::vector<float> x(3 * 512, 0.5f);
  std::vector<float> scores(6);
  three.run(inputs(x), outputs(scores));
  expect(scores[4] == scores[0] && scores[5] == scores[1], "rows that are alike");
  fails([&] { sized.entry(0); }, "got 0 sizes; expected 1");
  fails([&] { sized.entry(0, {0}); }, "forward at n0 = 0: ");
  fails([&] { sized.entry(0, {0}); }, "n0 from 1 to");
}

// A process that was forked has no threads, and computes the same.
void runs_in_a_fork(const heterosis::Library& whole) {
  auto pool = std::make_unique<heterosis::Pool>(whole, whole.threads());
  heterosis::Entry twice = whole.entry(0);
  const std::array<int8_t, 3> x{1, -64, 63};
  std::array<int8_t, 3> made{};
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    twice.run(inputs(x), outputs(made), pool->get());
    pool.reset();
    _exit(made == std::array<int8_t, 3>{2, -128, 126} ? 0 : 1);
  }
  int status = -1;
  expect(waitpid(child, &status, 0) == child && status == 0, "a forked process");
}

std::string named(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

void refuses_damaged(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string whole{std::istreambuf_iterator<char>(file), {}};
  const auto place = std::filesystem::path(path).replace_filename("libdamaged.so");
  const auto refused = [&](const std::string& content, const std::string& why) {
    std::ofstream(place, std::ios::binary) << content;
    fails([&] { heterosis::Library library(place.string()); }, why);
  };
  std::string flipped = whole;
  flipped[64] = static_cast<char>(flipped[64] ^ 1);
  refused("", "cut short");
  refused(whole.substr(0, whole.size() - 1), "cut short");
  refused(flipped, "damaged");
  whole[whole.size() - 16] = 3;
  refused(whole, "another version");
  std::filesystem::remove(place);
  fails([&] { heterosis::Library library(named("HETEROSIS_OTHER")); }, "another family of processors");
  fails([&] { heterosis::Library library(place.string()); }, "cannot be opened");
}

}  // namespace

int main() {
  try {
    const heterosis::Library mlp(named("HETEROSIS_LIBRARY"));
    tells_what_there_is(mlp);
    runs(mlp);
    runs_at_sizes(heterosis::Library(named("HETEROSIS_SIZED")));
    runs_in_a_fork(heterosis::Library(named("HETEROSIS_WHOLE")));
    refuses_damaged(named("HETEROSIS_LIBRARY"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::puts("all passed");
}
