// Numbers never seen: the plan for them is found, and no Python is asked.
#include <algorithm>
#include <bit>
#include <cmath>

#include "guards_type.h"
#include "replayed.h"

namespace heterosis::python {

namespace {

// Whether words agree but for those that are open.
bool is_alike(const OpenEntry& entry, const Signature& signature) {
  const auto count = static_cast<size_t>(signature.count());
  if (entry.words.size() != count) return false;
  const uint64_t* const words = signature.words();
  const uint64_t* const own = entry.words.data();
  size_t from = 0;
  for (const Open& size : entry.sizes) {
    if (!std::equal(words + from, words + size.at, own + from)) return false;
    from = size.at + 1;
  }
  return std::equal(words + from, words + count, own + from);
}

// Numbers of one name must be one.
bool set(std::vector<int64_t>& slots, std::vector<bool>& known, size_t name, int64_t number) {
  if (known[name] && slots[name] != number) return false;
  known[name] = true;
  slots[name] = number;
  return true;
}

// Whether a float may be another one: what divides by zero, and what is no number, has programs of
// its own.
bool may_be_open(int64_t bits) {
  const auto number = std::bit_cast<double>(bits);
  return std::isfinite(number) && number != 0.0;
}

// The floats of a call by their names in `slots`; false if those that are not open are others.
bool read_floats(const OpenEntry& entry, const Call& call, std::vector<int64_t>& slots,
                 std::vector<bool>& known) {
  auto open = entry.open_floats.begin();
  for (size_t i = 0; i < entry.floats.size(); ++i) {
    const int64_t bits = call.floats()[i];
    if (open == entry.open_floats.end() || open->at != i) {
      if (bits != entry.floats[i]) return false;
    } else if (!may_be_open(bits) || !set(slots, known, open++->name, bits)) {
      return false;
    }
  }
  return true;
}

// The sizes and floats of a call by their names, and what follows from them; false if it is one of
// another kind, or if what the program requires does not hold.
bool read(const OpenEntry& entry, const Call& call, std::vector<int64_t>& slots) {
  if (!is_alike(entry, call.signature())) return false;
  slots.assign(entry.formulas.slots(), 0);
  std::vector<bool> known(entry.formulas.sizes());
  for (const Open& size : entry.sizes) {
    const uint64_t word = call.signature().words()[size.at];
    if (word < entry.least || word >= entry.most) return false;
    if (!set(slots, known, size.name, static_cast<int64_t>(word))) return false;
  }
  return read_floats(entry, call, slots, known) &&
         entry.formulas.evaluate(0, entry.formulas.rows(), slots.data());
}

std::vector<int64_t> numbers_at(const OpenEntry& open, const std::vector<int64_t>& slots) {
  std::vector<int64_t> found;
  for (const Word& word : open.numbers) found.push_back(word.at(slots.data()));
  return found;
}

}  // namespace

bool takes_floats(const Entry& entry, const Call& call, std::vector<int64_t>& numbers) {
  if (entry.slots.empty()) {
    return std::equal(entry.floats.begin(), entry.floats.end(), call.floats());
  }
  const OpenEntry& open = *entry.made_by;
  std::vector<int64_t> slots;
  if (!read(open, call, slots)) return false;
  numbers = numbers_at(open, slots);
  return true;
}

Ref<const Entry> entry_at(const OpenEntry& open, const Call& call) {
  std::vector<int64_t> slots;
  if (!read(open, call, slots)) return {};
  if (!hold(open.program->guards.get())) return {};
  std::vector<int64_t> planned;
  for (const size_t name : open.planned) planned.push_back(slots[name]);
  PlanHandle plan = open.plans->at(planned).plan;
  if (!plan.plan) return {};
  auto* const entry = new Entry;
  const Ref<const Entry> owned(entry);
  describe(*entry, call);
  entry->plan = std::move(plan);
  entry->program = open.program;
  entry->numbers = numbers_at(open, slots);
  entry->made_by = Ref<const OpenEntry>(&open);
  if (!open.open_floats.empty()) entry->slots = std::move(slots);
  return owned;
}

}  // namespace heterosis::python
