package heterosis;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * One program of a library, with memory to run in: an entry for each thread. One that has sizes is
 * run `at` some.
 */
public final class Entry {
  private final Library library;
  private final Pointer handle; // of the library, or what stands for it at some sizes
  private final long number;
  private final String name;
  private final List<Size> sizes;
  private final List<Described> inputs;
  private final List<Described> outputs;
  private final Pointer workspace;

  Entry(Library library, long number) {
    this(library, library.handle(), number);
  }

  private Entry(Library library, Pointer handle, long number) {
    this.library = library;
    this.handle = handle;
    this.number = number;
    name = library.text("entry_name", handle, number);
    sizes = LongStream.range(0, library.number("sizes", handle, number)).mapToObj(i -> new Size(
        library.text("size_name", handle, number, i), ask("size_least", i), ask("size_most", i)))
        .toList();
    inputs = arrays("input");
    outputs = arrays("output");
    long bytes = sizes.isEmpty() ? library.number("workspace_bytes", handle, number) : 0;
    workspace = Library.aligned(bytes);
  }

  /** The program for arrays of some sizes, in their order. */
  public Entry at(long... given) {
    expect(given.length == sizes.size(), sizes.size() + " sizes");
    if (given.length == 0) return this;
    Memory wanted = new Memory(8L * given.length);
    wanted.write(0, given, 0, given.length);
    Memory code = new Memory(8);
    Pointer memory = Library.aligned(library.number("at_bytes", handle, number));
    Pointer found = library.address("at", handle, number, wanted, memory, code);
    if (found == null) {
      String shown = IntStream.range(0, given.length)
          .mapToObj(i -> sizes.get(i).name() + " = " + given[i]).collect(Collectors.joining(", "));
      String why = library.text("message", handle, number, code.getLong(0));
      throw new LibraryError(name + " at " + shown + ": " + why);
    }
    return new Entry(library, memory, number);
  }

  /** What arrays of the program may have any number for. */
  public List<Size> sizes() {
    return sizes;
  }

  public String name() {
    return name;
  }

  public List<Described> inputs() {
    return inputs;
  }

  public List<Described> outputs() {
    return outputs;
  }

  /** Run a program of float32 arrays on new arrays: a result for each output. */
  public float[][] run(float[]... given) {
    expectKnown();
    ByteBuffer[] from = new ByteBuffer[given.length];
    for (int i = 0; i < given.length; ++i) {
      expect(i < inputs.size() && inputs.get(i).dtype().equals("float32"), "float32 arrays");
      from[i] = buffer(4L * given[i].length);
      from[i].asFloatBuffer().put(given[i]);
    }
    ByteBuffer[] to = outputs.stream().map(array -> buffer(array.bytes())).toArray(ByteBuffer[]::new);
    runInto(from, to);
    return IntStream.range(0, to.length).mapToObj(i -> {
      expect(outputs.get(i).dtype().equals("float32"), "float32 results; use runInto");
      float[] made = new float[outputs.get(i).size()];
      to[i].asFloatBuffer().get(made);
      return made;
    }).toArray(float[][]::new);
  }

  /**
   * Run the program on the memory of direct buffers, whole and in the machine's byte order: see
   * `buffer`. Nothing is copied.
   */
  public void runInto(ByteBuffer[] given, ByteBuffer[] made) {
    expectKnown();
    Memory from = addresses(given, inputs, "inputs");
    Memory to = addresses(made, outputs, "outputs");
    long code = library.number(
        "run_with", handle, number, from, to, workspace, library.pool());
    if (code != 0) {
      throw new LibraryError(name + ": " + library.text("message", handle, number, code));
    }
  }

  /** Memory that programs read and write: of `Described.bytes()`. */
  public static ByteBuffer buffer(long bytes) {
    return ByteBuffer.allocateDirect(Math.toIntExact(bytes)).order(ByteOrder.nativeOrder());
  }

  @Override
  public String toString() {
    return name + listed(inputs) + " -> " + listed(outputs);
  }

  private static String listed(List<Described> arrays) {
    String text = arrays.toString();
    return "(" + text.substring(1, text.length() - 1) + ")";
  }

  private List<Described> arrays(String side) {
    long count = library.number(side + "s", handle, number);
    return LongStream.range(0, count).mapToObj(position -> {
      long[] shape = LongStream.range(0, ask(side + "_rank", position))
          .map(axis -> ask(side + "_extent", position, axis)).toArray();
      String label = library.text(side + "_name", handle, number, position);
      List<String> extents = LongStream.range(0, shape.length)
          .mapToObj(axis -> library.text(side + "_extent_text", handle, number, position, axis))
          .toList();
      String dtype = Described.TYPES[(int) ask(side + "_dtype", position)];
      return new Described(label, dtype, shape, extents, ask(side + "_bytes", position));
    }).toList();
  }

  private long ask(String function, long position) {
    return library.number(function, handle, number, position);
  }

  private long ask(String function, long position, long axis) {
    return library.number(function, handle, number, position, axis);
  }

  private Memory addresses(ByteBuffer[] buffers, List<Described> wanted, String side) {
    expect(buffers.length == wanted.size(), wanted.size() + " " + side);
    Memory found = new Memory(8L * Math.max(buffers.length, 1));
    for (int i = 0; i < buffers.length; ++i) {
      ByteBuffer buffer = buffers[i];
      long bytes = wanted.get(i).bytes();
      expect(buffer.isDirect() && buffer.capacity() == bytes,
          "a direct buffer of " + bytes + " bytes for " + wanted.get(i));
      // An empty buffer may have no address, and none of it is read.
      found.setPointer(8L * i, bytes == 0 ? workspace : Native.getDirectBufferPointer(buffer));
    }
    return found;
  }

  private void expectKnown() {
    expect(sizes.isEmpty(), "known sizes, by at(...)");
  }

  private void expect(boolean holds, String what) {
    if (!holds) throw new IllegalArgumentException(name + ": expected " + what + ": " + this);
  }
}
