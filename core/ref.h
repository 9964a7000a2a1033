// Shared ownership by a count inside the object: one pointer wide, one atomic operation a copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace heterosis {

// Base of objects held by Ref. The count starts at zero; the first Ref makes it one.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }

  // True for the last owner, who must then destroy the object. Release orders this owner's last
  // use before the destruction; acquire makes the destroying thread see every owner's.
  bool release() const { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  // Exact only while no other thread can copy or drop a Ref to this object.
  int64_t use_count() const { return count_.load(std::memory_order_acquire); }

 protected:
  ~Counted() = default;

 private:
  mutable std::atomic<int64_t> count_{0};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && object_->release()) delete object_;
  }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace heterosis
