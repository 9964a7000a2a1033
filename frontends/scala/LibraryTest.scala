import heterosis.LibraryError
import heterosis.exported._

/** HETEROSIS_LIBRARY=libmy_mlp.so ... scala -cp ... LibraryTest; ../README.md says which libraries
  * the variables name.
  */
object LibraryTest {
  def main(words: Array[String]): Unit = {
    using(sys.env("HETEROSIS_LIBRARY"))(mlp => {
      expect(mlp.toString == "forward(x: float32[1, 512]) -> (output: float32[1, 2])")
      val forward = mlp("forward")
      val Seq(scores) = forward(Array.fill(512)(0.5f))
      expect(scores.length == 2 && scores(0) != 0)
      expect(forward.takes.map(_.name) == Seq("x") && forward.gives.size == 1)
      fails("a direct buffer of 2048 bytes")(forward(Array(1f, 2f)))
      fails("expected 1 inputs")(forward())
      fails("no entry backward")(mlp("backward"))
    })
    using(sys.env("HETEROSIS_SIZED"), 1)(sized => {
      val forward = sized("forward")
      expect(forward.open.map(_.name) == Seq("n0"))
      val Seq(scores) = forward.at(3)(Array.fill(3 * 512)(0.5f))
      expect(scores.length == 6 && scores(4) == scores(0))
      fails("forward at n0 = 0: ")(forward.at(0))
      fails("expected known sizes")(forward(Array.fill(512)(0.5f)))
    })
    fails("NoSuchFile")(using("libmissing.so")(_.programs))
    println("all passed")
  }

  private def fails(why: String)(work: => Any): Unit = {
    val message =
      try { work; "no error" }
      catch { case error @ (_: LibraryError | _: IllegalArgumentException) => error.getMessage }
    expect(message.contains(why), s"expected '$why'; got '$message'")
  }

  private def expect(holds: Boolean, what: => String = ""): Unit =
    if (!holds) throw new AssertionError(what)
}
