// What an operation does with inputs of one signature: which results, which compiled function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi.h"
#include "array.h"
#include "error.h"
#include "ref.h"

namespace heterosis {

// A result: new memory of a shape, or a view of one of the array inputs.
struct ResultPlan {
  DType dtype = DType::float32;
  Dims shape;
  Dims strides;
  int64_t nbytes = 0;   // of new memory
  int view_of = -1;     // position among the arrays, or -1
  int64_t offset = 0;   // of a view, in elements
  int over = -1;        // which array may become it where that stands, by position, or -1
};

struct FailurePlan {
  ErrorKind kind;
  std::string message;
};

struct Invocation;
class Results;

// What runs a plan whose arrays are not in main memory, by the front end's means.
class Remote : public Counted {
 public:
  virtual ~Remote() = default;

  // Gives the results, new ones or arrays that exist, their elements. On the caller's thread, which
  // holds the front end's lock.
  virtual void run(const Invocation& invocation, const Results& results) const = 0;
};

// Immutable once made; shared by the cache and by queued work.
struct Plan : Counted {
  std::string operation;
  uint64_t serial = 0;                // no other plan of the process ever has it
  hx_function function = nullptr;     // null if every result is a view
  std::shared_ptr<const void> code;   // what the function is in: it lives as long as a plan runs it
  const hx_runtime* runtime = nullptr;  // with the number of threads that the plan reckons with
  std::vector<int64_t> integers;
  int64_t workspace = 0;              // bytes
  double nanoseconds = 0;             // estimate for one thread
  bool elementwise = false;           // may write over an input that it reads with the same view
  bool in_place = false;              // changes its first input where it stands: `out` is that input
  std::vector<ResultPlan> results;
  std::vector<FailurePlan> failures;  // a status whose low 16 bits are n means failures[n - 1]
  Ref<const Remote> remote;           // instead of a function, where arrays are not in main memory
};

// A number for a plan that no other plan has.
uint64_t next_serial();

// Of a signature. It comes from the program itself, not from an attacker.
uint64_t hash_words(const uint64_t* words, int count);

// Finds plans by signature: a list of words that says everything a plan depends on.
class PlanCache {
 public:
  const Plan* find(const uint64_t* words, int count) const;
  const Plan* insert(const uint64_t* words, int count, Ref<const Plan> plan);
  size_t size() const { return used_; }
  void clear();

 private:
  struct Entry {
    uint64_t hash = 0;
    std::vector<uint64_t> words;
    Ref<const Plan> plan;
  };

  static constexpr size_t kMost = 4096;  // then all are dropped: shapes that vary without end

  void grow();

  std::vector<Entry> entries_;  // open addressing, a power of two long, at most half full
  // What was dropped last: a call that is at work names its plan, and what runs beside it, or within
  // it as garbage is collected, may fill the cache.
  std::vector<Entry> dropped_;
  size_t used_ = 0;
};

}  // namespace heterosis
