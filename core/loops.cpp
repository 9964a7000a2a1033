#include "loops.h"

#include <algorithm>
#include <bit>
#include <climits>

#include "lock.h"
#include "processors.h"

namespace heterosis {
namespace {

// ticket: worker numbers left in the upper 16 bits, below them the shares left plus kBias. Each
// participant subtracts once too often, when it finds that none is left: the bias keeps that from
// borrowing from the upper part, for up to kBias participants.
constexpr int kWorkerShift = 48;
constexpr uint64_t kOneWorker = uint64_t{1} << kWorkerShift;
constexpr int64_t kBias = 1 << 20;

int64_t workers_left(uint64_t ticket) { return static_cast<int64_t>(ticket >> kWorkerShift); }
int64_t shares_left(uint64_t ticket) {
  return static_cast<int64_t>(ticket & (kOneWorker - 1)) - kBias;
}
uint64_t make_ticket(int64_t workers, int64_t shares) {
  return static_cast<uint64_t>(workers) << kWorkerShift | static_cast<uint64_t>(shares + kBias);
}

constexpr int64_t kOwnerSpin = 30'000;  // ns; shares are meant to be about this long
constexpr int64_t kOwnerPatience = 1'000'000;

struct Here {
  bool inside = false;
  int64_t worker = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local Here here;

}  // namespace

struct alignas(64) LoopTable::Slot {
  std::atomic<uint64_t> ticket{make_ticket(0, 0)};
  LoopBody loop{};
  int64_t participants = 0;  // at most; the highest worker number plus one
  uint64_t bit = 0;
  alignas(64) std::atomic<int64_t> done{0};

  bool all_done() const { return done.load(std::memory_order_seq_cst) == loop.shares(); }
};

bool inside_share() { return here.inside; }
int64_t current_worker() { return here.worker; }

void LoopBody::run_share(int64_t share, int64_t worker) const {
  const int64_t begin = share * grain;
  body(context, begin, count - begin < grain ? count : begin + grain, worker);
}

LoopTable::LoopTable() : slots_(new Slot[kSlots]) {
  for (int index = 0; index < kSlots; ++index) slots_[index].bit = uint64_t{1} << index;
}

LoopTable::~LoopTable() { delete[] slots_; }

LoopTable::Slot* LoopTable::open(const LoopBody& loop, int workers) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  int index;
  do {
    index = std::countr_one(used);
    if (index == kSlots) return nullptr;
  } while (!used_.compare_exchange_weak(used, used | slots_[index].bit,
                                        std::memory_order_acquire, std::memory_order_relaxed));
  Slot& slot = slots_[index];
  const int64_t shares = loop.shares();
  slot.loop = loop;
  slot.participants = std::min<int64_t>(workers, shares);
  slot.done.store(0, std::memory_order_relaxed);
  // Release: whoever joins sees the fields above. The bit comes last, and sequentially consistent,
  // since a thread that goes to sleep looks at open_ after it announced itself.
  slot.ticket.store(make_ticket(slot.participants - 1, shares - 1), std::memory_order_release);
  open_.fetch_or(slot.bit, std::memory_order_seq_cst);
  return &slot;
}

int64_t LoopTable::finish(Slot& slot, LoopHook after_first) {
  work({&slot, 0, 0}, after_first);
  wait_for_others(slot);
  const uint64_t ticket = slot.ticket.load(std::memory_order_relaxed);
  const int64_t helped = slot.participants - 1 - workers_left(ticket);
  used_.fetch_and(~slot.bit, std::memory_order_release);
  return helped;
}

LoopTable::Claim LoopTable::claim() {
  for (uint64_t open = open_.load(std::memory_order_seq_cst); open; open &= open - 1) {
    const Claim claim = join(slots_[std::countr_zero(open)]);
    if (claim.slot) return claim;
  }
  return {};
}

void LoopTable::clear() {
  for (int index = 0; index < kSlots; ++index) slots_[index].ticket.store(make_ticket(0, 0));
  open_.store(0);
  used_.store(0);
  sleeping_owners_.store(0);
}

// Claims a worker number and a share in one step, or nothing. Only the ticket may be looked at
// before; if it was another loop's a moment ago, that does not matter.
LoopTable::Claim LoopTable::join(Slot& slot) {
  uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
  do {
    if (workers_left(ticket) == 0 || shares_left(ticket) <= 0) return {};
  } while (!slot.ticket.compare_exchange_weak(ticket, ticket - kOneWorker - 1,
                                              std::memory_order_acq_rel,
                                              std::memory_order_acquire));
  if (workers_left(ticket) == 1) close(slot);
  return {&slot, slot.loop.shares() - shares_left(ticket),
          slot.participants - workers_left(ticket)};
}

// Each report but the last comes after the next claim. After the last one the slot may already
// serve another loop.
void LoopTable::work(const Claim& claim, LoopHook after_first) {
  Slot& slot = *claim.slot;
  const Here before = here;
  here = {true, claim.worker};
  {
    const Participation participation(&slot);
    for (int64_t share = claim.share;;) {
      slot.loop.run_share(share, claim.worker);
      if (after_first.call && share == claim.share) after_first.call(after_first.context);
      const int64_t left = shares_left(slot.ticket.fetch_sub(1, std::memory_order_acq_rel));
      if (left <= 1) close(slot);
      if (left <= 0) break;
      share = slot.loop.shares() - left;
      report(slot);
    }
  }
  here = before;
  report(slot);
}

// No more helpers: takes the slot's bit away. Only a participant, before its last report, may.
void LoopTable::close(Slot& slot) {
  if (open_.load(std::memory_order_relaxed) & slot.bit) {
    open_.fetch_and(~slot.bit, std::memory_order_seq_cst);
  }
}

// Release: the owner sees what the share wrote. Sequentially consistent, like the owner's
// announcement that it sleeps: of the two, one sees the other.
void LoopTable::report(Slot& slot) {
  const int64_t shares = slot.loop.shares();
  if (slot.done.fetch_add(1, std::memory_order_seq_cst) + 1 < shares) return;
  if (sleeping_owners_.load(std::memory_order_seq_cst) == 0) return;
  ends_.fetch_add(1, std::memory_order_seq_cst);
  wake_sleepers(ends_, INT_MAX);
}

// Who has been woken may have to wait for its processor again: beside a busy process, for
// milliseconds. So the owner sleeps where others have a use for its processor, or take long.
void LoopTable::wait_for_others(Slot& slot) {
  if (slot.all_done()) return;
  const int64_t began = nanoseconds();
  for (int64_t now = began;; now = nanoseconds()) {
    if (spin_for_others(slot, now + kOwnerSpin)) return;
    const Lending lending(&slot);
    if (lending.guests() > 0 || now - began > kOwnerPatience) return sleep_for_others(slot);
  }
}

// True as soon as all shares are done, false if they are not by then.
bool LoopTable::spin_for_others(const Slot& slot, int64_t end) {
  do {
    for (int turn = 0; turn < 16; ++turn) {
      if (slot.all_done()) return true;
      relax();
    }
  } while (nanoseconds() < end);
  return false;
}

void LoopTable::sleep_for_others(Slot& slot) {
  sleeping_owners_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t ends = ends_.load(std::memory_order_seq_cst);
    if (slot.all_done()) break;
    sleep_while(ends_, ends, -1);
  }
  sleeping_owners_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace heterosis
