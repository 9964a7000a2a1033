import heterosis.Described;
import heterosis.Entry;
import heterosis.Library;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** Runs a program on arrays in files, for ../check.sh: RunFiles LIBRARY FOLDER CALLS [SIZE...]. */
public final class RunFiles {
  public static void main(String[] words) throws IOException {
    Path folder = Path.of(words[1]);
    int calls = Integer.parseInt(words[2]);
    try (Library library = new Library(words[0])) {
      long[] sizes = Arrays.stream(words).skip(3).mapToLong(Long::parseLong).toArray();
      Entry entry = library.entries().get(0).at(sizes);
      ByteBuffer[] from = memories(entry.inputs());
      ByteBuffer[] to = memories(entry.outputs());
      for (int i = 0; i < from.length; ++i) {
        from[i].put(Files.readAllBytes(folder.resolve("input" + i)));
      }
      entry.runInto(from, to);
      for (int i = 0; i < to.length; ++i) {
        byte[] content = new byte[to[i].capacity()];
        to[i].get(0, content);
        Files.write(folder.resolve("output" + i), content);
      }
      long before = System.nanoTime();
      for (int i = 0; i < calls; ++i) entry.runInto(from, to);
      System.out.println((System.nanoTime() - before) / 1e3 / calls);
    }
  }

  private static ByteBuffer[] memories(List<Described> arrays) {
    return arrays.stream().map(array -> Entry.buffer(array.bytes())).toArray(ByteBuffer[]::new);
  }
}
