import heterosis.Library;

/** Runs the MLP that README.md exports: java -cp ... RunMlp libmy_mlp.so. */
public final class RunMlp {
  public static void main(String[] words) {
    float[] x = new float[512];
    for (int i = 0; i < x.length; ++i) x[i] = (i % 7) / 7f;
    try (Library mlp = new Library(words.length > 0 ? words[0] : "libmy_mlp.so")) {
      float[] scores = mlp.entry("forward").run(x)[0];
      System.out.println(scores[0] + " " + scores[1]);
    }
  }
}
