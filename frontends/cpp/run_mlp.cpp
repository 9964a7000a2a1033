// Runs the MLP that README.md exports: c++ -std=c++20 run_mlp.cpp -I. -o run_mlp
#include <array>
#include <cstdio>
#include <vector>

#include "heterosis.hpp"

int main() {
  try {
    const heterosis::Library library("./libmy_mlp.so");
    heterosis::Entry mlp = library.entry(0);
    std::vector<float> x(512);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 7;
    std::array<float, 2> scores{};
    mlp.run(heterosis::inputs(x), heterosis::outputs(scores));
    std::printf("%a %a\n", scores[0], scores[1]);
  } catch (const heterosis::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
