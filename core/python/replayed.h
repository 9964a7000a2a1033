// Programs as the core runs them again: what Python has told of them, and the calls that they serve.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "../formulas.h"
#include "../ref.h"
#include "common.h"
#include "plan_handle.h"
#include "replayed_call.h"
#include "sized_plans.h"

namespace heterosis::python {

// Where an input of a program comes from.
struct Source {
  enum class Kind : uint8_t { argument, outside, key, supplied, known };
  Kind kind;
  Py_ssize_t position;  // among the arguments, or among the numbers of this kind
  Object array;         // from outside
};

// Result `from` of the plan is written into the array that input `into` is: if `recorded`, as an
// operation that gradients flow through; if `last`, nobody needs the result any more, unless it is a
// view.
struct Write {
  size_t from;
  size_t into;
  bool recorded;
  bool last;
};

// A part of what a program returns: an array, a constant, or a structure of further parts. An array
// from 0 on is a result of the plan; below, -1 - i is the array of input i.
struct Item {
  enum class Kind : uint8_t { array, constant, tuple, list, dict };
  Kind kind;
  Py_ssize_t array = 0;
  Object constant;
  std::vector<Item> items;   // of a structure
  std::vector<Object> keys;  // of a dictionary
};

// A program, whatever plan it runs by.
struct Program : Counted {
  std::vector<Source> sources;
  Item returned;
  std::vector<Write> writes;
  std::vector<bool> taken_over;  // which results nobody needs but the arrays that they are written to
  Object supply;  // gives the supplied numbers of each run; null without
  Object record;  // is told of runs that gradients are recorded of: (inputs, results); null without
  Object guards;  // what else the program was made of
  bool constants;  // whether its arguments must be no variables
  bool waits;      // whether a call waits for the run, since that may refuse elements
};

// Where a number that is open stands among the words, or the floats, of a call; and which one it is.
struct Open {
  size_t at;
  size_t name;
};

// A program for arguments of one kind, some numbers of which are open. It holds for those that all
// formulas hold for.
struct OpenEntry : Counted {
  std::vector<uint64_t> words;  // of one call
  std::vector<int64_t> floats;
  std::vector<Object> texts;    // that words name
  std::vector<Open> sizes;      // words that may be others, in order
  std::vector<Open> open_floats;  // in order
  uint64_t least, most;         // that sizes are: from the one on, to below the other
  Formulas formulas;
  std::shared_ptr<const SizedPlans> plans;
  std::vector<size_t> planned;  // the names of the sizes that plans are found by
  std::vector<Word> numbers;    // that a plan is fed, the bits of a double each
  Ref<const Program> program;
  Object example;               // what Python knows such calls by; null for none

  explicit OpenEntry(Formulas all) : formulas(std::move(all)) {}
};

// A program with the plan for arguments of one kind.
struct Entry : Counted {
  std::vector<uint64_t> words;
  std::vector<int64_t> floats;
  std::vector<Object> texts;  // that words name
  PlanHandle plan;
  Ref<const Program> program;
  std::vector<int64_t> numbers;  // that the plan is fed, the bits of a double each
  Ref<const OpenEntry> made_by;  // null, if Python did
  std::vector<int64_t> slots;    // of its formulas, if that has open floats
};

// An entry that serves a call, and the numbers that its plan is fed.
struct Found {
  Ref<const Entry> entry;
  std::vector<int64_t> numbers;
};

// What an entry has of the call that it is for.
template <typename Made>
void describe(Made& entry, const Call& call) {
  const Signature& signature = call.signature();
  entry.words.assign(signature.words(), signature.words() + signature.count());
  entry.floats.assign(call.floats(), call.floats() + signature.scalar_count);
  entry.texts = call.texts();
}

// The program that these fields tell of: (sources, returned, writes, supply, record, guards,
// constants, waits).
//
// Sources are positions of arguments, arrays from outside, None for random keys, and for numbers
// ("supplied", position) and ("known", position). What is returned is ("array", i), ("constant",
// object), ("tuple", items), ("list", items) or ("dict", items, keys). `writes` has triples of a
// result, an input, and whether gradients flow; `supply` and `record` may be None.
Ref<const Program> to_program(PyObject* fields);

// Whether an entry is for the floats of a call; then `numbers` is what its plan is fed, if these
// follow from them.
bool takes_floats(const Entry& entry, const Call& call, std::vector<int64_t>& numbers);

// An entry for a call, made by an open one; null if that is not for it.
Ref<const Entry> entry_at(const OpenEntry& open, const Call& call);

// Whether an argument shares memory with another input, or with an array that Python has read, and
// the program writes one of them: it has been captured for arrays that are apart.
bool is_entangled(const Program& program, const Call& call);

// Whether an argument is a variable, of a program that must know which of them are.
bool has_variable(const Program& program, const Call& call);

// Runs an entry, and gives what its function returns; null where a program that `waits` has refused
// elements: nothing has been written then, no key drawn, and Python has to make the call.
PyObject* run_entry(const Found& found, const Call& call);

// -- reading what Python hands over ---------------------------------------------------------------

inline Py_ssize_t to_number(PyObject* object) {
  const Py_ssize_t found = PyLong_AsSsize_t(object);
  if (found == -1 && PyErr_Occurred()) throw PythonError();
  return found;
}

template <typename Visit>
void each(PyObject* sequence, Visit visit) {
  const Object items = checked(PySequence_Fast(sequence, "expected a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    visit(PySequence_Fast_GET_ITEM(items.get(), i));
  }
}

}  // namespace heterosis::python
