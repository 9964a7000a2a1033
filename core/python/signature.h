// The arguments of one call, sorted: arrays and numbers, and the words that identify their kinds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../dispatch.h"
#include "../random_state.h"

namespace heterosis::python {

// What stands first in the description of an argument.
enum class Tag : uint8_t { none, boolean, integer, real, array, text, letters, list, tuple, dict };

inline Tag tag_of(uint64_t word) { return static_cast<Tag>(word & 0xFF); }

class Signature {
 public:
  // Scratch memory is sized by the number of threads, so a plan holds for one number of them.
  void begin(uint64_t attributes, int threads) {
    words_[count_++] = attributes | static_cast<uint64_t>(threads) << 48;
  }
  void set_device(int device) { words_[0] |= static_cast<uint64_t>(device) << 32; }
  void add_none() { push(static_cast<uint64_t>(Tag::none)); }
  // What is part of the description itself.
  void add_word(Tag tag, uint64_t word) {
    push(static_cast<uint64_t>(tag));
    push(word);
  }
  // A text by what it says; at most `kLetters` bytes.
  void add_letters(const char* text, size_t bytes) {
    push(static_cast<uint64_t>(Tag::letters) | static_cast<uint64_t>(bytes) << 8);
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text + at, std::min(bytes - at, sizeof word));
      push(word);
    }
  }
  void add_number(Tag tag, int64_t bits) {
    push(static_cast<uint64_t>(tag));
    if (tag == Tag::integer) integers_ |= uint32_t{1} << scalar_count;
    scalars[scalar_count++] = bits;
  }
  // A number that is drawn later, by `draw`: a call that is not run must not use up a random key.
  void add_key() {
    keys_ |= uint32_t{1} << scalar_count;
    add_number(Tag::integer, 0);
  }
  // After all operands: a number that the type of one of the arrays does not hold is written in the
  // program, which says what becomes of it, and so it is part of the description.
  void add_numbers_beyond() {
    if (!integers_ || !has_integers_) return;
    for (int i = 0; integers_ >> i; ++i) {
      if (!(integers_ >> i & 1) || !is_beyond(scalars[i])) continue;
      push(kBeyond | static_cast<uint64_t>(i));
      push(static_cast<uint64_t>(scalars[i]));
    }
  }
  bool is_beyond(int64_t number) const {
    for (int i = 0; i < array_count; ++i) {
      if (is_integer(arrays[i]->dtype) && !holds(arrays[i]->dtype, number)) return true;
    }
    return false;
  }
  void draw(RandomState& state) {
    for (int i = 0; keys_ >> i; ++i) {
      if (keys_ >> i & 1) scalars[i] = state.next();
    }
  }
  void add_array(const Array& array) {
    describe(array);
    has_integers_ |= is_integer(array.dtype);
    arrays[array_count++] = &array;
  }
  // The memory that a result is written into; it is no input.
  void add_out(const Array& array) {
    push(kOut);
    describe(array);
  }

  const uint64_t* words() const { return words_; }
  int count() const { return count_; }

  // Too many or too large arguments for the fixed room here: the call takes the slow path.
  bool full() const {
    return count_ > kWords - 2 * kMaxRank - 4 - 2 * kNumbers || array_count >= kArrays ||
           scalar_count >= kNumbers;
  }

  static constexpr size_t kLetters = 128;  // fewer words than an array takes
  static constexpr int kArrays = 256;  // such as a model's parameters
  static constexpr int kNumbers = 24;  // fewer than `keys_` has bits
  const Array* arrays[kArrays];
  int64_t scalars[kNumbers];
  int array_count = 0;
  int scalar_count = 0;

 private:
  static constexpr int kWords = 2048;
  static constexpr uint64_t kOut = 1 << 16;
  static constexpr uint64_t kBeyond = 1 << 17;

  void push(uint64_t word) { words_[count_++] = word; }

  void describe(const Array& array) {
    push(static_cast<uint64_t>(Tag::array) | static_cast<uint64_t>(array.dtype) << 8 |
         static_cast<uint64_t>(array.rank()) << 16 | static_cast<uint64_t>(array.contiguous) << 24);
    for (int64_t extent : array.shape) push(static_cast<uint64_t>(extent));
    if (array.contiguous) return;
    for (int64_t stride : array.strides) push(static_cast<uint64_t>(stride));
  }

  uint64_t words_[kWords];
  int count_ = 0;
  uint32_t keys_ = 0;          // a bit for each of the scalars that is a random key
  uint32_t integers_ = 0;      // and for each that is one of Python's integers, or a key
  bool has_integers_ = false;  // among the arrays
};

// How many words describe a text, the first of which is this one.
inline size_t letter_words(uint64_t word) {
  return 1 + ((word >> 8) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

// Likewise, an array.
inline size_t array_words(uint64_t word) {
  const size_t rank = word >> 16 & 0xFF;
  const bool is_contiguous = word >> 24 & 1;
  return 1 + (is_contiguous ? rank : 2 * rank);
}

}  // namespace heterosis::python
