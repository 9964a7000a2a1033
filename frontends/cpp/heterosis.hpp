// Libraries that Heterosis has exported, in C++20: one header over dlopen. Link with -ldl where the
// C library asks for it.
//
//   heterosis::Library mlp("./libmy_mlp.so");
//   std::vector<float> scores(2);
//   mlp.entry(0).run(heterosis::inputs(x), heterosis::outputs(scores));
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heterosis.h"

namespace heterosis {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An array that a program takes or gives. Extents that follow from sizes are negative, and written
// in `extents`.
struct Array {
  std::string name;
  int64_t dtype = 0;  // HETEROSIS_FLOAT32 and so on
  std::vector<int64_t> shape;
  std::vector<std::string> extents;
  int64_t bytes = 0;
};

// An extent that arrays may have any number for, within bounds.
struct Size {
  std::string name;
  int64_t least = 0;
  int64_t most = 0;
};

// Elements of one type, without a copy. `dtype` is -1 for bytes, which pass for any type.
template <class Byte>
struct View {
  Byte* data;
  std::size_t bytes;
  int64_t dtype;
};
using Given = View<const void>;
using Made = View<void>;

template <class T>
constexpr int64_t dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return HETEROSIS_BOOL;
  else if constexpr (std::is_same_v<T, int8_t>) return HETEROSIS_INT8;
  else if constexpr (std::is_same_v<T, uint8_t>) return HETEROSIS_UINT8;
  else if constexpr (std::is_same_v<T, int32_t>) return HETEROSIS_INT32;
  else if constexpr (std::is_same_v<T, int64_t>) return HETEROSIS_INT64;
  else if constexpr (std::is_same_v<T, float>) return HETEROSIS_FLOAT32;
  else if constexpr (std::is_same_v<T, double>) return HETEROSIS_FLOAT64;
  else if constexpr (std::is_same_v<T, int16_t>) return HETEROSIS_INT16;
  else if constexpr (std::is_same_v<T, uint16_t>) return HETEROSIS_UINT16;
  else if constexpr (std::is_same_v<T, uint32_t>) return HETEROSIS_UINT32;
  else if constexpr (std::is_same_v<T, uint64_t>) return HETEROSIS_UINT64;
  else {
    static_assert(std::is_same_v<T, std::byte>, "use std::byte for float16 and bfloat16");
    return -1;
  }
}

// Anything contiguous, as a program takes it: vectors, arrays, spans.
template <class... Ranges>
std::vector<Given> inputs(const Ranges&... ranges) {
  return {[](auto span) -> Given {
    return {span.data(), span.size_bytes(), dtype_of<typename decltype(span)::value_type>()};
  }(std::span(ranges))...};
}

template <class... Ranges>
std::vector<Made> outputs(Ranges&... ranges) {
  return {[](auto span) -> Made {
    return {span.data(), span.size_bytes(), dtype_of<typename decltype(span)::value_type>()};
  }(std::span(ranges))...};
}

class Entry;

// An open library. Threads may share it. Parameters in a file of their own are expected beside it.
// All is read and checked before it is used, unless `check` is false.
class Library {
 public:
  explicit Library(const std::string& path, bool check = true) {
    const std::string weights = path.substr(0, path.rfind(".so")) + ".weights";
    if (check) whole(path);
    if (check && std::ifstream(weights).good()) whole(weights);
    handle_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!handle_) throw Error(dlerror());
    int64_t code = 0;
    library_ = find<decltype(heterosis_open_with)>("open_with")(HETEROSIS_VERSION, weights.c_str(), &code);
    if (!library_) {
      throw Error(path + ": " + find<decltype(heterosis_message)>("message")(nullptr, 0, code));
    }
  }

  ~Library() {
    if (library_) find<decltype(heterosis_close)>("close")(library_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::string target() const { return find<decltype(heterosis_target)>("target")(library_); }
  int64_t threads() const { return find<decltype(heterosis_threads)>("threads")(library_); }
  std::string name() const { return find<decltype(heterosis_name)>("name")(library_); }
  int64_t entries() const { return find<decltype(heterosis_entries)>("entries")(library_); }

  // A program; for these sizes, if it has some.
  Entry entry(int64_t number, const std::vector<int64_t>& sizes = {}) const;
  std::vector<Size> sizes(int64_t number) const {
    using Ask = int64_t(const void*, int64_t, int64_t);
    std::vector<Size> found;
    const int64_t count = find<decltype(heterosis_sizes)>("sizes")(library_, number);
    for (int64_t i = 0; i < count; ++i) {
      found.push_back({find<decltype(heterosis_size_name)>("size_name")(library_, number, i),
                       find<Ask>("size_least")(library_, number, i),
                       find<Ask>("size_most")(library_, number, i)});
    }
    return found;
  }

  const void* get() const { return library_; }

  // A function of heterosis.h.
  template <class Function>
  Function* find(const std::string& name) const {
    void* found = dlsym(handle_.get(), ("heterosis_" + name).c_str());
    if (!found) throw Error("heterosis_" + name + " is missing: no library of Heterosis");
    return reinterpret_cast<Function*>(found);
  }

 private:
  static void whole(const std::string& path) {
    if (const char* wrong = heterosis_check(path.c_str())) throw Error(path + ": " + wrong);
  }

  struct Close {
    void operator()(void* handle) const { dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle_;
  const void* library_ = nullptr;
};

// Threads that runs of a library share. The library must outlive it, and it the runs.
class Pool {
 public:
  Pool(const Library& library, int64_t threads)
      : library_(library.get()), stop_(library.find<decltype(heterosis_pool_stop)>("pool_stop")) {
    const int64_t bytes =
        library.find<decltype(heterosis_pool_bytes)>("pool_bytes")(library_, threads);
    if (bytes < 0) {
      throw Error("got " + std::to_string(threads) + " threads; expected 1 to " +
                  std::to_string(library.threads()));
    }
    memory_.reset(::operator new(static_cast<std::size_t>(bytes), std::align_val_t{64}));
    library.find<decltype(heterosis_pool_start)>("pool_start")(library_, memory_.get(), threads);
  }
  ~Pool() {
    if (process_ == getpid()) stop_(library_, memory_.get());  // a forked process has no threads
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  const heterosis_pool* get() const { return static_cast<const heterosis_pool*>(memory_.get()); }

 private:
  struct Free {
    void operator()(void* memory) const { ::operator delete(memory, std::align_val_t{64}); }
  };
  const void* library_;
  decltype(heterosis_pool_stop)* stop_;
  pid_t process_ = getpid();
  std::unique_ptr<void, Free> memory_;
};

// One program of a library, with memory to run in: an entry for each thread. The library must
// outlive it.
class Entry {
 public:
  Entry(const Library& library, int64_t number, const std::vector<int64_t>& sizes = {})
      : number_(number),
        run_(library.find<decltype(heterosis_run_with)>("run_with")),
        message_(library.find<decltype(heterosis_message)>("message")),
        library_(at(library, sizes)),
        inputs_(arrays(library, "input")),
        outputs_(arrays(library, "output")) {
    const auto bytes = library.find<decltype(heterosis_workspace_bytes)>("workspace_bytes");
    workspace_.reset(::operator new(static_cast<std::size_t>(bytes(library_, number)) + 1, kAligned));
  }

  const std::vector<Array>& inputs() const { return inputs_; }
  const std::vector<Array>& outputs() const { return outputs_; }

  // Runs the program on elements that stand in the caller's memory, with the threads of a pool.
  void run(const std::vector<Given>& given, const std::vector<Made>& made,
           const heterosis_pool* pool = nullptr) {
    check(given, inputs_, "inputs");
    check(made, outputs_, "outputs");
    std::vector<const void*> from;
    std::vector<void*> to;
    // What has no elements may have no address, and none of it is read.
    for (const Given& view : given) from.push_back(view.bytes ? view.data : workspace_.get());
    for (const Made& view : made) to.push_back(view.bytes ? view.data : workspace_.get());
    const int64_t code = run_(library_, number_, from.data(), to.data(), workspace_.get(), pool);
    if (code) throw Error(message_(library_, number_, code));
  }

 private:
  static constexpr std::align_val_t kAligned{64};
  struct Free {
    void operator()(void* memory) const { ::operator delete(memory, kAligned); }
  };

  // What stands for the library where the program has these sizes.
  const void* at(const Library& library, const std::vector<int64_t>& sizes) {
    const void* whole = library.get();
    const int64_t count = library.find<decltype(heterosis_sizes)>("sizes")(whole, number_);
    if (count < 0) throw Error(message_(whole, number_, count));
    if (static_cast<std::size_t>(count) != sizes.size()) {
      throw Error("got " + std::to_string(sizes.size()) + " sizes; expected " +
                  std::to_string(count));
    }
    const int64_t bytes = library.find<decltype(heterosis_at_bytes)>("at_bytes")(whole, number_);
    prepared_.reset(::operator new(static_cast<std::size_t>(bytes) + 1, kAligned));
    int64_t code = 0;
    const auto prepare = library.find<decltype(heterosis_at)>("at");
    const void* found = prepare(whole, number_, sizes.data(), prepared_.get(), &code);
    if (!found) throw Error(shown(library, sizes) + message_(whole, number_, code));
    return found;
  }

  // What an error begins with: "forward at n0 = 3: ".
  std::string shown(const Library& library, const std::vector<int64_t>& sizes) const {
    const void* whole = library.get();
    const auto size_name = library.find<decltype(heterosis_size_name)>("size_name");
    const auto name = library.find<decltype(heterosis_entry_name)>("entry_name");
    std::string found = name(whole, number_);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      found += (i ? ", " : " at ");
      found += size_name(whole, number_, static_cast<int64_t>(i));
      found += " = " + std::to_string(sizes[i]);
    }
    return found + ": ";
  }

  std::vector<Array> arrays(const Library& library, const std::string& side) const {
    using Ask = int64_t(const void*, int64_t, int64_t);
    const auto count = library.find<decltype(heterosis_inputs)>(side + "s")(library_, number_);
    if (count < 0) throw Error(message_(library_, number_, count));
    std::vector<Array> found(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      Array& array = found[static_cast<std::size_t>(i)];
      array.name = library.find<decltype(heterosis_input_name)>(side + "_name")(library_, number_, i);
      array.dtype = library.find<Ask>(side + "_dtype")(library_, number_, i);
      array.bytes = library.find<Ask>(side + "_bytes")(library_, number_, i);
      const auto extent = library.find<decltype(heterosis_input_extent)>(side + "_extent");
      const auto text =
          library.find<decltype(heterosis_input_extent_text)>(side + "_extent_text");
      const int64_t rank = library.find<Ask>(side + "_rank")(library_, number_, i);
      for (int64_t axis = 0; axis < rank; ++axis) {
        array.shape.push_back(extent(library_, number_, i, axis));
        array.extents.push_back(text(library_, number_, i, axis));
      }
    }
    return found;
  }

  template <class Views>
  static void check(const Views& views, const std::vector<Array>& arrays, const char* side) {
    if (views.size() != arrays.size()) {
      throw Error("got " + std::to_string(views.size()) + " " + side + "; expected " +
                  std::to_string(arrays.size()));
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const bool fits = views[i].dtype < 0 || views[i].dtype == arrays[i].dtype;
      if (fits && views[i].bytes == static_cast<std::size_t>(arrays[i].bytes)) continue;
      throw Error(arrays[i].name + ": got " + std::to_string(views[i].bytes) + " bytes of type " +
                  std::to_string(views[i].dtype) + "; expected " +
                  std::to_string(arrays[i].bytes) + " of type " + std::to_string(arrays[i].dtype));
    }
  }

  int64_t number_;
  decltype(heterosis_run_with)* run_;
  decltype(heterosis_message)* message_;
  std::unique_ptr<void, Free> prepared_;
  const void* library_;
  std::vector<Array> inputs_;
  std::vector<Array> outputs_;
  std::unique_ptr<void, Free> workspace_;
};

inline Entry Library::entry(int64_t number, const std::vector<int64_t>& sizes) const {
  return Entry(*this, number, sizes);
}

}  // namespace heterosis
