package heterosis;

import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * An array that a program takes or gives, in row-major order. Extents that follow from sizes are
 * negative, and written in `extents`.
 */
public record Described(
    String name, String dtype, long[] shape, List<String> extents, long bytes) {
  /** Of the element types by their numbers in heterosis.h. */
  static final String[] TYPES = {
    "bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "int16", "uint16", "uint32", "uint64"
  };

  public int size() {
    return Math.toIntExact(LongStream.of(shape).reduce(1, (a, b) -> a * b));
  }

  @Override
  public String toString() {
    return name + ": " + dtype + IntStream.range(0, shape.length)
        .mapToObj(i -> shape[i] < 0 ? extents.get(i) : Long.toString(shape[i])).toList();
  }
}
