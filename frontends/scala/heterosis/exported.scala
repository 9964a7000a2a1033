package heterosis

import java.nio.ByteBuffer
import scala.collection.JavaConverters._

/** The Java package `heterosis` as Scala writes it: `import heterosis.exported._`. */
object exported {

  /** What `work` makes of the library in a file, which is closed behind it. */
  def using[T](path: String)(work: Library => T): T = closing(new Library(path))(work)

  /** The same with as many threads as are asked for. */
  def using[T](path: String, threads: Int)(work: Library => T): T =
    closing(new Library(path, threads))(work)

  private def closing[T](library: Library)(work: Library => T): T =
    try work(library)
    finally library.close()

  implicit class Programs(val library: Library) extends AnyVal {

    /** The program of a name. */
    def apply(name: String): Entry = library.entry(name)

    def programs: Seq[Entry] = library.entries.asScala
  }

  implicit class Program(val entry: Entry) extends AnyVal {

    /** Run a program of float32 arrays, flat and in row-major order: a result for each output. */
    def apply(arrays: Array[Float]*): Seq[Array[Float]] = entry.run(arrays: _*)

    /** Run a program on the memory of direct buffers, which is not copied. */
    def into(inputs: Seq[ByteBuffer], outputs: Seq[ByteBuffer]): Unit =
      entry.runInto(inputs.toArray, outputs.toArray)

    def takes: Seq[Described] = entry.inputs.asScala
    def gives: Seq[Described] = entry.outputs.asScala
    def open: Seq[Size] = entry.sizes.asScala
  }
}
