import heterosis.{Described, Entry}
import heterosis.exported._
import java.nio.ByteBuffer
import java.nio.file.{Files, Paths}

/** Runs a program on arrays in files, for ../check.sh: RunFiles LIBRARY FOLDER CALLS [SIZE...]. */
object RunFiles {
  def main(words: Array[String]): Unit = {
    val Array(path, folder, calls, sizes @ _*) = words
    using(path) { library =>
      val program = library.programs.head.at(sizes.map(_.toLong): _*)
      val (from, to) = (memories(program.takes), memories(program.gives))
      for ((memory, i) <- from.zipWithIndex) {
        memory.put(Files.readAllBytes(Paths.get(folder, s"input$i")))
      }
      program.into(from, to)
      for ((memory, i) <- to.zipWithIndex) {
        val content = new Array[Byte](memory.capacity)
        memory.duplicate.get(content)
        Files.write(Paths.get(folder, s"output$i"), content)
      }
      val before = System.nanoTime
      for (_ <- 0 until calls.toInt) program.into(from, to)
      println((System.nanoTime - before) / 1e3 / calls.toInt)
    }
  }

  private def memories(arrays: Seq[Described]): Seq[ByteBuffer] =
    arrays.map(array => Entry.buffer(array.bytes)).toVector
}
