import heterosis.Entry;
import heterosis.Library;
import heterosis.LibraryError;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * HETEROSIS_LIBRARY=libmy_mlp.so ... java -cp ... LibraryTest; ../README.md says which libraries the
 * variables name.
 */
public final class LibraryTest {
  public static void main(String[] words) throws IOException {
    Path path = Path.of(System.getenv("HETEROSIS_LIBRARY"));
    try (Library mlp = new Library(path.toString())) {
      expect(mlp.toString().equals("forward(x: float32[1, 512]) -> (output: float32[1, 2])"),
          mlp.toString());
      Entry forward = mlp.entry("forward");
      float[] x = new float[512];
      Arrays.fill(x, 0.5f);
      float[] scores = forward.run(x)[0];
      expect(scores.length == 2 && scores[0] != 0, "scores");
      ByteBuffer[] from = {Entry.buffer(2048)};
      ByteBuffer[] to = {Entry.buffer(8)};
      from[0].asFloatBuffer().put(x);
      forward.runInto(from, to);
      expect(to[0].getFloat(0) == scores[0] && to[0].getFloat(4) == scores[1], "the same");
      fails(() -> forward.run(new float[3]), "a direct buffer of 2048 bytes");
      fails(() -> forward.run(), "expected 1 inputs");
      fails(() -> forward.runInto(new ByteBuffer[] {ByteBuffer.allocate(2048)}, to), "direct");
      fails(() -> mlp.entry("backward"), "no entry backward");
    }
    refusesWhenClosed(new Library(path.toString()));
    fails(() -> new Library(System.getenv("HETEROSIS_OTHER")), "for another family of processors");
    fails(() -> new Library(path.toString(), 99), "expected 1 to");
    runsAtSizes(new Library(System.getenv("HETEROSIS_SIZED")).entry("forward"));
    refusesDamaged(Files.readAllBytes(path));
    System.out.println("all passed");
  }

  private static void refusesWhenClosed(Library mlp) {
    Entry forward = mlp.entry("forward");
    mlp.close();
    fails(() -> forward.run(new float[512]), "my_mlp is closed");
    fails(() -> mlp.entry("forward"), "my_mlp is closed");
    mlp.close();
  }

  private static void runsAtSizes(Entry sized) {
    expect(sized.toString().equals("forward(x: float32[n0, 512]) -> (output: float32[n0, 2])"),
        sized.toString());
    float[] x = new float[3 * 512];
    Arrays.fill(x, 0.5f);
    float[] scores = sized.at(3).run(x)[0];
    expect(scores.length == 6 && scores[4] == scores[0] && scores[5] == scores[1], "scores");
    fails(() -> sized.run(x), "expected known sizes");
    fails(() -> sized.at(), "expected 1 sizes");
    for (String why : new String[] {"forward at n0 = 0: ", "n0 from 1 to", "export it with"}) {
      fails(() -> sized.at(0), why);
    }
  }

  private static void refusesDamaged(byte[] whole) throws IOException {
    Path place = Files.createTempDirectory("heterosis").resolve("libdamaged.so");
    fails(() -> new Library(place.toString()), "NoSuchFile");
    byte[] flipped = whole.clone();
    flipped[64] ^= 1;
    byte[] other = whole.clone();
    other[whole.length - 16] = 3;
    byte[][] contents = {new byte[0], Arrays.copyOf(whole, whole.length - 1), flipped, other};
    String[] reasons = {"cut short", "cut short", "damaged", "has version 3"};
    for (int i = 0; i < contents.length; ++i) {
      Files.write(place, contents[i]);
      fails(() -> new Library(place.toString()), reasons[i]);
    }
  }

  private static void fails(Runnable work, String why) {
    try {
      work.run();
    } catch (LibraryError | IllegalArgumentException error) {
      expect(error.getMessage().contains(why), error.getMessage());
      return;
    }
    expect(false, "no error: " + why);
  }

  private static void expect(boolean holds, String what) {
    if (!holds) throw new AssertionError(what);
  }
}
