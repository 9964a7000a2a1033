// Conversions of 16-bit floats that LLVM calls where a processor has no instruction for them.
//
// A 16-bit float is passed in the low bits of a vector register, as a float is, so that `float`
// stands for both here and no compiler needs to know the 16-bit types.
#pragma once

namespace heterosis {

float half_to_float(float half);
float float_to_half(float number);
float double_to_half(double number);
float float_to_bfloat(float number);
float double_to_bfloat(double number);

}  // namespace heterosis
