# Opens a library that Heterosis has exported. Its runs share their work between at most `threads`.
# Parameters in a file of their own are expected beside the library.
open_library <- function(path, threads = NULL) {
  weights <- paste0(sub("\\.so$", "", path), ".weights")
  files <- normalizePath(c(path, weights[file.exists(weights)]), mustWork = TRUE)
  handle <- .Call(C_open, files, if (is.null(threads)) 0L else as.integer(threads))
  numbers <- seq_len(.Call(C_count, handle)) - 1L
  facts <- lapply(numbers, function(number) .Call(C_describe, handle, number))
  names(facts) <- vapply(facts, function(entry) entry$name, "")
  structure(list(handle = handle, entries = facts), class = "heterosis_library")
}

# The programs of a library: the names, types and extents of their inputs and outputs.
entries <- function(library) library$entries

# A program of a library for arrays of some sizes, in their order: as a library of it alone.
at <- function(library, ..., entry = names(library$entries)[1]) {
  facts <- entry_of(library, entry)
  sizes <- as.numeric(c(...))
  if (length(sizes) != length(facts$sizes) || anyNA(sizes) || any(sizes != trunc(sizes))) {
    stop(sprintf("%s: got the sizes (%s); expected (%s)", entry, paste(sizes, collapse = ", "),
                 paste(facts$sizes, collapse = ", ")), call. = FALSE)
  }
  if (length(sizes) == 0) return(library)
  handle <- .Call(C_at, library$handle, facts$number, sizes)
  known <- stats::setNames(list(.Call(C_describe, handle, facts$number)), entry)
  structure(list(handle = handle, entries = known), class = "heterosis_library")
}

# The kind of processors whose code was chosen.
target <- function(library) .Call(C_target, library$handle)

# Runs a program on R's arrays, vectors and matrices: a list with the results, by name. Elements are
# converted to the types of the program, and results to numbers, integers or logicals.
run <- function(library, ..., entry = names(library$entries)[1]) {
  facts <- known(entry_of(library, entry))
  given <- list(...)
  if (length(given) != length(facts$inputs)) {
    stop(sprintf("%s: got %d arrays; expected %s", entry, length(given), described(facts)),
         call. = FALSE)
  }
  packed <- Map(function(array, wanted) pack_array(array, wanted, facts), given, facts$inputs)
  made <- .Call(C_run, library$handle, facts$number, unname(packed))
  results <- Map(unpack_array, made, facts$outputs)
  names(results) <- vapply(facts$outputs, function(array) array$name, "")
  results
}

# Runs a program on raw vectors, which have the bytes of dense arrays in row-major order: a list of
# such. Nothing is converted or copied.
run_raw <- function(library, arrays, entry = names(library$entries)[1]) {
  .Call(C_run, library$handle, known(entry_of(library, entry))$number, arrays)
}

# An entry whose sizes are known.
known <- function(entry) {
  if (length(entry$sizes) > 0) {
    stop(sprintf("%s: its sizes are not known; run what at(library, %s) gives", entry$name,
                 paste(entry$sizes, collapse = ", ")), call. = FALSE)
  }
  entry
}

format.heterosis_library <- function(x, ...) {
  paste(vapply(x$entries, described, ""), collapse = "\n")
}

print.heterosis_library <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  invisible(x)
}

entry_of <- function(library, name) {
  found <- library$entries[[name]]
  if (is.null(found)) {
    stop(sprintf("no entry '%s'; there are:\n%s", name, format(library)), call. = FALSE)
  }
  found
}

described <- function(entry) {
  side <- function(arrays) {
    one <- function(a) sprintf("%s: %s[%s]", a$name, a$dtype, paste(a$extents, collapse = ", "))
    paste(vapply(arrays, one, ""), collapse = ", ")
  }
  sprintf("%s(%s) -> (%s)", entry$name, side(entry$inputs), side(entry$outputs))
}

# R's arrays begin with the elements of the first column, and programs' with those of the first row.
pack_array <- function(array, wanted, entry) {
  extents <- if (is.null(dim(array))) length(array) else dim(array)
  is_row <- is.null(dim(array)) && sum(wanted$shape != 1) <= 1
  fits <- is_row && prod(wanted$shape) == length(array)
  if (!fits && !identical(as.numeric(extents), as.numeric(wanted$shape))) {
    stop(sprintf("%s: got an array of [%s] for %s; expected %s", entry$name,
                 paste(extents, collapse = ", "), wanted$name, described(entry)), call. = FALSE)
  }
  if (length(extents) > 1) array <- aperm(array)
  .Call(C_pack, as.vector(array), wanted$dtype)
}

unpack_array <- function(bytes, wanted) {
  elements <- .Call(C_unpack, bytes, wanted$dtype)
  if (length(wanted$shape) < 2) return(elements)
  aperm(array(elements, rev(wanted$shape)))
}
