// Shorthand of the engine's tests: storages that hold one number, tasks from lambdas.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "engine.h"

namespace heterosis {

using Cell = Ref<Storage>;

inline Cell make_cell() { return Storage::make(sizeof(int64_t)); }
inline int64_t& value(const Cell& cell) { return *static_cast<int64_t*>(cell->ensure()); }

struct Uses {
  std::initializer_list<Cell> reads = {};
  std::initializer_list<Cell> writes = {};
  std::initializer_list<Cell> updates = {};
};

template <typename Body>
void push(const Uses& uses, Body body) {
  auto task = make_task(std::move(body));
  for (const Cell& cell : uses.reads) task->read(cell);
  for (const Cell& cell : uses.writes) task->write(cell);
  for (const Cell& cell : uses.updates) task->update(cell);
  engine().push(std::move(task));
}

inline int64_t read(const Cell& cell) {
  engine().wait(cell->variable);
  return value(cell);
}

// Lets a condition of this process hold for one test.
struct Threads {
  explicit Threads(int count) : before(pool().threads()) { pool().set_threads(count); }
  ~Threads() { pool().set_threads(before); }
  const int before;
};

}  // namespace heterosis
