// Runs a program on arrays in files, for ../check.sh: run_files LIBRARY FOLDER CALLS [SIZE...]
// c++ -std=c++20 run_files.cpp -I../../src/heterosis/backends -ldl -o run_files
#include <chrono>
#include <cstdio>
#include <fstream>

#include "heterosis.hpp"

namespace {

std::vector<std::vector<char>> memories(const std::vector<heterosis::Array>& arrays) {
  std::vector<std::vector<char>> found;
  for (const auto& array : arrays) found.emplace_back(static_cast<std::size_t>(array.bytes));
  return found;
}

int run(const std::string& path, const std::string& folder, long calls,
        const std::vector<int64_t>& sizes) {
  const heterosis::Library library(path);
  const heterosis::Pool pool(library, library.threads());
  auto entry = library.entry(0, sizes);
  auto from = memories(entry.inputs()), to = memories(entry.outputs());
  std::vector<heterosis::Given> given;
  std::vector<heterosis::Made> made;
  for (auto& memory : from) {
    std::ifstream file(folder + "/input" + std::to_string(given.size()), std::ios::binary);
    const auto bytes = static_cast<std::streamsize>(memory.size());
    if (!file.read(memory.data(), bytes)) throw heterosis::Error("an input is too short");
    given.push_back({memory.data(), memory.size(), -1});
  }
  for (auto& memory : to) made.push_back({memory.data(), memory.size(), -1});
  entry.run(given, made, pool.get());
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::ofstream file(folder + "/output" + std::to_string(i), std::ios::binary);
    file.write(to[i].data(), static_cast<std::streamsize>(to[i].size()));
  }
  const auto before = std::chrono::steady_clock::now();
  for (long i = 0; i < calls; ++i) entry.run(given, made, pool.get());
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - before;
  std::printf("%g\n", took.count() / static_cast<double>(calls));
  return 0;
}

}  // namespace

int main(int count, char** words) try {
  if (count < 4) throw heterosis::Error("run_files LIBRARY FOLDER CALLS [SIZE...]");
  std::vector<int64_t> sizes;
  for (int i = 4; i < count; ++i) sizes.push_back(std::stoll(words[i]));
  return run(words[1], words[2], std::stol(words[3]), sizes);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
