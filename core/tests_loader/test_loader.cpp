#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "../object_loader.h"
#include "testing.h"

using heterosis::LoadedObject;
using heterosis::LoadError;

extern "C" std::int64_t host_add(std::int64_t a, std::int64_t b) { return a + b; }
std::int64_t host_value = 1234;

void* resolve(std::string_view name) {
  if (name == "host_add") return reinterpret_cast<void*>(host_add);
  if (name == "host_value") return &host_value;
  return heterosis::find_symbol(name);
}

namespace {

Bytes read_file(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  CHECK(!text.empty());
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

template <class Function>
Function* function(const LoadedObject& object, const char* name) {
  return reinterpret_cast<Function*>(object.address(name));
}

std::string error_of(const Bytes& bytes) {
  try {
    LoadedObject::load(bytes, resolve);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void test_calls(const Bytes& bytes) {
  const auto object = LoadedObject::load(bytes, resolve);
  CHECK(function<std::int64_t(std::int64_t, std::int64_t)>(object, "add_far")(2, 3) == 6);
  CHECK(function<std::int64_t()>(object, "read_far")() == 1234);
  CHECK(function<double(std::int64_t)>(object, "weight")(2) == 3.5);
  CHECK(function<std::int64_t(std::int64_t, std::int64_t)>(object, "apply")(0, 5) == 10);
  CHECK(function<std::int64_t(std::int64_t, std::int64_t)>(object, "apply")(1, 5) == 15);
  CHECK(function<std::int64_t()>(object, "count_calls")() == 41);
  CHECK(function<std::int64_t()>(object, "count_calls")() == 42);
  const std::int64_t from[] = {5, 6, 7};
  using Copy = std::int64_t(const std::int64_t*, std::int64_t);
  CHECK(function<Copy>(object, "copy_through")(from, 3) == 7);
  CHECK(std::strcmp(function<const char*(std::int64_t)>(object, "name")(3), "three") == 0);
  CHECK(*static_cast<std::int64_t*>(object.address("exported_data")) == 7);
}

void test_copies_are_apart(const Bytes& bytes) {
  auto first = LoadedObject::load(bytes, resolve);
  const auto second = LoadedObject::load(bytes, resolve);
  function<std::int64_t()>(first, "count_calls")();
  CHECK(function<std::int64_t()>(second, "count_calls")() == 41);
  void* before = first.address("count_calls");
  LoadedObject moved = std::move(first);
  CHECK(moved.address("count_calls") == before);
  CHECK(function<std::int64_t()>(moved, "count_calls")() == 42);
  moved = LoadedObject::load(bytes, resolve);
  CHECK(function<std::int64_t()>(moved, "count_calls")() == 41);
}

// In a child, because the write must end the process.
void test_code_is_sealed(const Bytes& bytes) {
  const auto object = LoadedObject::load(bytes, resolve);
  auto* code = static_cast<volatile unsigned char*>(object.address("add_far"));
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    signal(SIGSEGV, SIG_DFL);
    code[0] = 0;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

void test_errors(const Bytes& kernel, const Bytes& unknown) {
  CHECK(contains(error_of(unknown), "'nobody_defines_this'"));
  CHECK(contains(error_of({}), "truncated"));
  CHECK(contains(error_of(Bytes(64, std::byte{'x'})), "not an ELF file"));
  Bytes other = kernel;
  other[18] = std::byte{8};  // e_machine: MIPS
  CHECK(contains(error_of(other), "machine 8"));
  try {
    LoadedObject::load(kernel, resolve).address("missing");
    CHECK(false);
  } catch (const LoadError& error) {
    CHECK(contains(error.what(), "'missing'") && contains(error.what(), "add_far"));
  }
}

void test_registered_symbols(const Bytes& unknown) {
  static const auto answer = [] { return 41; };
  int (*address)() = answer;
  heterosis::register_symbol("nobody_defines_this", reinterpret_cast<void*>(address));
  const auto object = LoadedObject::load(unknown);
  CHECK(function<int()>(object, "call_unknown")() == 42);
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count == 3);
  const Bytes kernel = read_file(arguments[1]), unknown = read_file(arguments[2]);
  test_calls(kernel);
  test_copies_are_apart(kernel);
  test_code_is_sealed(kernel);
  test_errors(kernel, unknown);
  test_registered_symbols(unknown);
  test_relocations();
  test_half();
  fuzz(kernel);
  std::puts("all passed");
}
