// A short list of extents or strides. Up to six stand in the object itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>

namespace heterosis {

inline constexpr int kMaxRank = 32;

class Dims {
 public:
  Dims() = default;
  explicit Dims(int count) { resize(count); }
  Dims(std::initializer_list<int64_t> items) : Dims(static_cast<int>(items.size())) {
    std::copy(items.begin(), items.end(), data());
  }
  Dims(const Dims& other) : Dims(other.count_) { std::copy_n(other.data(), count_, data()); }
  Dims(Dims&& other) noexcept = default;
  Dims& operator=(Dims other) noexcept {
    count_ = other.count_;
    more_ = std::move(other.more_);
    if (!more_) std::copy_n(other.inline_, count_, inline_);
    return *this;
  }

  int size() const { return count_; }
  int64_t* data() { return more_ ? more_.get() : inline_; }
  const int64_t* data() const { return more_ ? more_.get() : inline_; }
  int64_t& operator[](int i) { return data()[i]; }
  int64_t operator[](int i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + count_; }
  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  // The items are unset afterwards.
  void resize(int count) {
    count_ = count;
    more_ = count > kInline ? std::make_unique<int64_t[]>(static_cast<size_t>(count)) : nullptr;
  }

 private:
  static constexpr int kInline = 6;

  int count_ = 0;
  int64_t inline_[kInline];
  std::unique_ptr<int64_t[]> more_;
};

}  // namespace heterosis
