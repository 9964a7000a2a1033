// A piece of memory that arrays view, and its place in the dependency order.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator.h"
#include "recycle.h"
#include "ref.h"
#include "variable.h"

namespace heterosis {

// Devices from this number on have memory of their own. What is there the front end keeps, and works
// with; the core has no address of it.
constexpr int kFirstRemote = 1 << 15;

// The one for arrays that several processes have together.
constexpr int kOfProcesses = 2 * kFirstRemote - 1;

// Invariant: the data live until the last Ref is dropped. Tasks hold Refs, so the last one may be
// dropped by a worker thread. They stay where they are once allocated, but for `exchange`: who knows
// their address without a place in the dependency order is one of the holders.
class Storage final : public Counted, public Recycled {
 public:
  // Called once, on whichever thread drops the last Ref, no lock of ours held. It must not throw.
  using Release = void (*)(void* context) noexcept;

  // Memory of our own, not allocated yet. Zero bytes make a bare variable, to order what has no
  // data (a random generator's state, output to a terminal).
  static Ref<Storage> make(int64_t nbytes);

  // Memory of somebody else (NumPy, DLPack, a mapped file), valid until `release(context)`
  // (always, if that is null).
  static Ref<Storage> adopt(void* data, int64_t nbytes, Release release, void* context);

  ~Storage();

  int64_t nbytes() const { return nbytes_; }
  bool foreign() const { return release_ != nullptr; }
  bool allocated() const { return data() != nullptr; }

  // Null before the first ensure().
  void* data() const { return data_.load(std::memory_order_acquire); }

  // The data, allocated now if they were not: by the engine when the first task that uses the
  // storage starts, by the dispatcher for inline work. Any thread; throws OutOfMemory.
  void* ensure() {
    void* data = data_.load(std::memory_order_acquire);
    return data ? data : allocate_data();
  }

  // Exchanges the data with those of another storage as large, both of them allocated and ours, or
  // both remote, by work that may write both.
  void exchange(Storage& other);

  Variable variable;

  // The number of the context that its arrays belong to. Front end only.
  int device = 0;
  bool is_remote() const { return device >= kFirstRemote; }

  // What has the elements of a remote storage, which `release` lets go of; null before the first
  // write. Front end only.
  void* elements() const { return elements_; }
  void set_elements(void* elements, Release release);

  // Counts the writes issued into existing arrays; gradient recording compares it. Front end only.
  uint64_t version = 0;

  // Whether gradients are left for one of its arrays. Front end only.
  bool has_variable = false;

  // Whether a call that is recorded has written into it: its other arrays do not know of that.
  // Front end only.
  bool is_followed = false;

  // Others who hold the data's address, through the buffer protocol or DLPack, and may write them
  // unseen; and how many have let go of it.
  std::atomic<int64_t> holders{0};
  std::atomic<int64_t> released{0};
  void hold() { holders.fetch_add(1, std::memory_order_relaxed); }
  void let_go() {
    released.fetch_add(1, std::memory_order_relaxed);
    holders.fetch_sub(1, std::memory_order_release);
  }
  // Whether all writes are counted in `version`.
  bool is_ours() const {
    return !foreign() && holders.load(std::memory_order_acquire) == 0;
  }

 private:
  Storage(void* data, int64_t nbytes, Release release, void* context)
      : data_(data), nbytes_(nbytes), release_(release), context_(context) {}
  void* allocate_data();

  std::atomic<void*> data_;
  const int64_t nbytes_;
  const Release release_;
  void* const context_;
  void* elements_ = nullptr;
  Release release_elements_ = nullptr;
};

}  // namespace heterosis
