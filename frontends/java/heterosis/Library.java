package heterosis;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.zip.CRC32;

/**
 * A library that Heterosis has exported.
 *
 * <p>Threads may share it, each with entries of its own. Runs share their work between at most
 * `threads`. Parameters in a file of their own are expected beside the library. Close it when no run
 * uses it.
 */
public final class Library implements AutoCloseable {
  private static final long VERSION = 2;
  private static final int SEAL = 24; // bytes that end every library: magic, version, CRC-32, size
  private static final int ALIGNMENT = 64;

  private final NativeLibrary functions;
  private final Pointer library;
  private final Pointer pool;
  private final String name;
  private final long threads;
  private volatile boolean closed;

  /** Open a library with as many threads as it was exported for. */
  public Library(String path) {
    this(path, 0);
  }

  /** Open a library with so many threads. */
  public Library(String path, long threads) {
    String weights = path.replaceFirst("\\.so$", "") + ".weights";
    check(Path.of(path));
    if (Files.exists(Path.of(weights))) check(Path.of(weights));
    functions = NativeLibrary.getInstance(Path.of(path).toAbsolutePath().toString());
    Memory code = new Memory(8);
    library = address("open_with", VERSION, weights, code);
    if (library == null) {
      throw new LibraryError(path + ": " + text("message", null, 0L, code.getLong(0)));
    }
    name = text("name", library);
    this.threads = threads == 0 ? number("threads", library) : threads;
    long bytes = number("pool_bytes", library, this.threads);
    if (bytes < 0) {
      throw new LibraryError(name + ": got " + threads + " threads; expected 1 to "
          + number("threads", library));
    }
    pool = aligned(bytes);
    number("pool_start", library, pool, this.threads);
  }

  public String name() {
    return name;
  }

  /** The kind of processors whose code was chosen. */
  public String target() {
    return text("target", library);
  }

  public long threads() {
    return threads;
  }

  /** The programs of the library, each with memory of its own to run in. */
  public List<Entry> entries() {
    return LongStream.range(0, number("entries", library)).mapToObj(i -> new Entry(this, i)).toList();
  }

  /** The program of a name. */
  public Entry entry(String wanted) {
    return entries().stream().filter(entry -> entry.name().equals(wanted)).findFirst()
        .orElseThrow(() -> new LibraryError(name + ": no entry " + wanted + "; there are:\n" + this));
  }

  @Override
  public String toString() {
    return entries().stream().map(Entry::toString).collect(Collectors.joining("\n"));
  }

  /** End the threads and let go of the files; no run may use them. Nothing is asked afterwards. */
  @Override
  public synchronized void close() {
    if (closed) return;
    number("pool_stop", library, pool);
    number("close", library);
    closed = true;
  }

  Pointer handle() {
    return library;
  }

  Pointer pool() {
    return pool;
  }

  long number(String function, Object... arguments) {
    return found(function).invokeLong(arguments);
  }

  String text(String function, Object... arguments) {
    return found(function).invokeString(arguments, false);
  }

  Pointer address(String function, Object... arguments) {
    return found(function).invokePointer(arguments);
  }

  private Function found(String function) {
    if (closed) throw new LibraryError(name + " is closed");
    return functions.getFunction("heterosis_" + function);
  }

  /** Memory as programs want it for themselves. */
  static Pointer aligned(long bytes) {
    return new Memory(bytes + ALIGNMENT).align(ALIGNMENT);
  }

  /** Refuse what is for other processors, which the system's loader says it does not find. */
  private static void checkFamily(Path path) throws IOException {
    try (InputStream file = Files.newInputStream(path)) {
      ByteBuffer begin = ByteBuffer.wrap(Arrays.copyOf(file.readNBytes(20), 20));
      begin.order(ByteOrder.LITTLE_ENDIAN);
      int number = begin.getShort(18);
      String system = System.getProperty("os.arch");
      boolean fits = number == 62 && (system.equals("amd64") || system.equals("x86_64"))
          || number == 183 && system.equals("aarch64");
      if (begin.getInt(0) == 0x464C457F && !fits) { // "\177ELF"
        String family = number == 62 ? "x86-64" : number == 183 ? "AArch64" : "one that is not known";
        throw new LibraryError(path + " is for another family of processors: " + family
            + "; this one is " + system + ". Export the library with another target, or use such a machine.");
      }
    }
  }

  /** Refuse files that are damaged: the system's loader would follow whatever stands there. */
  private static void check(Path path) {
    try (InputStream file = Files.newInputStream(path)) {
      long size = Math.max(Files.size(path) - SEAL, 0);
      CRC32 sum = new CRC32();
      byte[] block = new byte[1 << 20];
      long left = size;
      while (left > 0) {
        int read = file.read(block, 0, (int) Math.min(block.length, left));
        if (read < 0) break;
        sum.update(block, 0, read);
        left -= read;
      }
      byte[] seal = file.readNBytes(SEAL + 1);
      ByteBuffer said = ByteBuffer.wrap(seal).order(ByteOrder.LITTLE_ENDIAN);
      if (seal.length != SEAL || said.getLong(0) != 0x4F534F5245544548L) { // "HETEROSO"
        throw new LibraryError(
            path + " is cut short, stripped, or not a library that heterosis.export has written.");
      }
      if (Integer.toUnsignedLong(said.getInt(12)) != sum.getValue() || said.getLong(16) != size) {
        throw new LibraryError(path + " is damaged: its size or its checksum is wrong. Copy it again.");
      }
      if (said.getInt(8) != VERSION) {
        throw new LibraryError(path + " has version " + said.getInt(8)
            + " of heterosis.h; this class expects " + VERSION + ".");
      }
      checkFamily(path);
    } catch (IOException error) {
      throw new LibraryError(path + ": " + error);
    }
  }
}
