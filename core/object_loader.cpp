#include "object_loader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "elf_object.h"

namespace heterosis {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t host_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t host_machine = EM_AARCH64;
#else
constexpr std::uint16_t host_machine = EM_NONE;
#endif

constexpr std::uint64_t absent = ~std::uint64_t{0};
constexpr std::uint64_t largest_section = std::uint64_t{1} << 28;
constexpr std::uint64_t largest_image = std::uint64_t{1} << 30;  // far below any overflow
constexpr std::uint64_t largest_alignment = 4096;  // a mapping promises no more than a page
constexpr std::uint64_t slot_size = 8, stub_size = 16;

[[noreturn]] void fail(const std::string& message) { throw LoadError("object file: " + message); }

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) & ~(step - 1);
}

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void put_word(std::byte* bytes, std::uint64_t word) { std::memcpy(bytes, &word, sizeof word); }

// Code that jumps to `target`, anywhere: load the word that follows it, branch there.
void write_stub(std::byte* bytes, std::uint64_t target) {
  static constexpr unsigned char x86_64[] = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b};
  static constexpr unsigned char aarch64[] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6};
  std::memcpy(bytes, host_machine == EM_AARCH64 ? aarch64 : x86_64, 8);
  put_word(bytes + 8, target);
}

// Puts one object together. Order of the image: code, constants, stubs and slots (all of them
// never written again, and in the same pages, so that a small kernel takes one), then data.
class Linker {
 public:
  Linker(const ElfObject& object, const SymbolResolver& resolve)
      : object_(object),
        resolve_(resolve),
        loaded_(object.sections().size()),
        offsets_(object.sections().size(), absent),
        slots_(object.symbols().size(), absent),
        stubs_(object.symbols().size(), absent),
        addresses_(object.symbols().size(), absent) {}

  CodeMapping link() {
    lay_out();
    mapping_ = CodeMapping(image_size_);
    copy_sections();
    for_each_relocation([this](const Place& place) { relocate(place); });
    mapping_.seal(code_size_);
    return std::move(mapping_);
  }

  std::vector<LoadedObject::Symbol> placed_symbols(const CodeMapping& mapping) const;

 private:
  // A relocation, with everything about it that is the same before and after the layout.
  struct Place {
    const Elf64_Rela& entry;
    const RelocationKind& kind;
    std::size_t section;
    std::size_t symbol;
  };

  template <class Action>
  void for_each_relocation(Action action) const;
  Place checked_place(const Elf64_Rela& entry, std::size_t section) const;
  std::string describe(const Place& place) const;

  bool belongs(const Elf64_Shdr& section) const;
  void lay_out();
  void append_sections(std::uint64_t wanted_flags);
  void reserve(std::uint64_t& offset, std::uint64_t size);
  void reserve_for(const Place& place);
  void copy_sections();

  void relocate(const Place& place);
  std::uint64_t target(const Place& place, std::uint64_t at);
  std::uint64_t slot(std::size_t symbol);
  std::uint64_t stub(std::size_t symbol);
  std::uint64_t symbol_address(std::size_t symbol);
  std::uint64_t find_address(const Elf64_Sym& symbol) const;
  std::uint64_t base() const { return reinterpret_cast<std::uintptr_t>(mapping_.data()); }

  const ElfObject& object_;
  const SymbolResolver& resolve_;
  CodeMapping mapping_;
  std::vector<bool> loaded_;                  // whether a section becomes part of the image
  std::vector<std::uint64_t> offsets_;        // a loaded section's place in the image
  std::vector<std::uint64_t> slots_, stubs_;  // a symbol's, if it needs one
  std::vector<std::uint64_t> addresses_;      // a symbol's, once it was looked up
  std::uint64_t image_size_ = 0, code_size_ = 0;
};

bool Linker::belongs(const Elf64_Shdr& section) const {
  if (!(section.sh_flags & SHF_ALLOC) || section.sh_type == SHT_NOTE) return false;
  const auto name = object_.name(section);
  if (name == ".eh_frame") return false;  // compiled functions neither throw nor are unwound
  constexpr auto changing_code = SHF_WRITE | SHF_EXECINSTR;
  const bool known = section.sh_type == SHT_PROGBITS || section.sh_type == SHT_NOBITS;
  if (!known || (section.sh_flags & SHF_TLS) || (section.sh_flags & changing_code) == changing_code)
    fail("section '" + std::string(name) + "' is of a kind that is not supported");
  return true;
}

void Linker::append_sections(std::uint64_t wanted_flags) {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const Elf64_Shdr& section = object_.sections()[i];
    const auto flags = section.sh_flags & (SHF_WRITE | SHF_EXECINSTR);
    if (flags != wanted_flags || !loaded_[i]) continue;
    const std::uint64_t alignment = section.sh_addralign ? section.sh_addralign : 1;
    if ((alignment & (alignment - 1)) != 0 || alignment > largest_alignment)
      fail("section '" + std::string(object_.name(section)) + "' asks for an alignment of " +
           std::to_string(alignment));
    if (section.sh_size > largest_section)
      fail("section '" + std::string(object_.name(section)) + "' is too large");
    offsets_[i] = round_up(image_size_, alignment);
    image_size_ = offsets_[i] + section.sh_size;
    if (image_size_ > largest_image) fail("its sections are too large together");
  }
}

void Linker::lay_out() {
  for (std::size_t i = 0; i < loaded_.size(); ++i) loaded_[i] = belongs(object_.sections()[i]);
  append_sections(SHF_EXECINSTR);
  append_sections(0);
  image_size_ = round_up(image_size_, stub_size);
  for_each_relocation([this](const Place& place) { reserve_for(place); });
  code_size_ = image_size_ = round_up(image_size_, page_size());
  append_sections(SHF_WRITE);
}

void Linker::reserve(std::uint64_t& offset, std::uint64_t size) {
  if (offset != absent) return;
  offset = image_size_;
  image_size_ += size;
}

void Linker::reserve_for(const Place& place) {
  const bool external = object_.symbols()[place.symbol].st_shndx == SHN_UNDEF;
  if (place.kind.via == Via::call && external) reserve(stubs_[place.symbol], stub_size);
  if (place.kind.via == Via::slot) reserve(slots_[place.symbol], slot_size);
}

void Linker::copy_sections() {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    if (!loaded_[i]) continue;
    const auto bytes = object_.contents(object_.sections()[i]);
    if (!bytes.empty()) std::memcpy(mapping_.data() + offsets_[i], bytes.data(), bytes.size());
  }
}

template <class Action>
void Linker::for_each_relocation(Action action) const {
  for (const Elf64_Shdr& section : object_.sections()) {
    if (section.sh_type != SHT_RELA && section.sh_type != SHT_REL) continue;
    if (section.sh_info >= loaded_.size()) fail("relocations of a section that does not exist");
    if (!loaded_[section.sh_info]) continue;
    if (section.sh_type == SHT_REL) fail("relocations without addends are not supported");
    for (const Elf64_Rela& entry : object_.relocations(section)) {
      const Place place = checked_place(entry, section.sh_info);
      if (place.kind.via != Via::none) action(place);
    }
  }
}

Linker::Place Linker::checked_place(const Elf64_Rela& entry, std::size_t section) const {
  const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info));
  const RelocationKind* kind = find_relocation(object_.machine(), type);
  const auto symbol = static_cast<std::size_t>(ELF64_R_SYM(entry.r_info));
  if (!kind)
    fail("relocation type " + std::to_string(type) + " against '" +
         std::string(object_.name(object_.symbols()[symbol])) + "' is not supported");
  const Place place{entry, *kind, section, symbol};
  const Elf64_Shdr& into = object_.sections()[section];
  const std::uint64_t size = into.sh_type == SHT_NOBITS ? 0 : into.sh_size;
  const std::uint64_t width = kind->via == Via::none ? 0 : relocation_width(kind->form);
  if (width > size || entry.r_offset > size - width) fail(describe(place) + " is outside");
  return place;
}

std::string Linker::describe(const Place& place) const {
  return std::string("relocation ") + place.kind.name + " at offset " +
         std::to_string(place.entry.r_offset) + " of section '" +
         std::string(object_.name(object_.sections()[place.section])) + "' against '" +
         std::string(object_.name(object_.symbols()[place.symbol])) + "'";
}

std::uint64_t Linker::find_address(const Elf64_Sym& symbol) const {
  if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
  const std::string name(object_.name(symbol));
  if (symbol.st_shndx != SHN_UNDEF) {
    if (!loaded_[symbol.st_shndx]) fail("'" + name + "' is of a section left out");
    return base() + offsets_[symbol.st_shndx] + symbol.st_value;
  }
  if (void* found = name.empty() ? nullptr : resolve_(name))
    return reinterpret_cast<std::uintptr_t>(found);
  // Index 0 stands for "no symbol", and a weak one may stay without a definition.
  if (name.empty() || ELF64_ST_BIND(symbol.st_info) == STB_WEAK) return 0;
  fail("the symbol '" + name + "' is not known; make it so with register_symbol");
}

std::uint64_t Linker::symbol_address(std::size_t symbol) {
  std::uint64_t& known = addresses_[symbol];
  if (known == absent) known = find_address(object_.symbols()[symbol]);
  return known;
}

std::uint64_t Linker::slot(std::size_t symbol) {
  put_word(mapping_.data() + slots_[symbol], symbol_address(symbol));
  return base() + slots_[symbol];
}

std::uint64_t Linker::stub(std::size_t symbol) {
  write_stub(mapping_.data() + stubs_[symbol], symbol_address(symbol));
  return base() + stubs_[symbol];
}

std::uint64_t Linker::target(const Place& place, std::uint64_t at) {
  const auto addend = static_cast<std::uint64_t>(place.entry.r_addend);
  if (place.kind.via == Via::slot) return slot(place.symbol) + addend;
  const std::uint64_t direct = symbol_address(place.symbol) + addend;
  if (reaches(place.kind, at, direct) || stubs_[place.symbol] == absent) return direct;
  return stub(place.symbol) + addend;
}

void Linker::relocate(const Place& place) {
  const std::uint64_t offset = offsets_[place.section] + place.entry.r_offset;
  const std::uint64_t at = base() + offset;
  const std::uint64_t value = target(place, at);
  if (!reaches(place.kind, at, value)) fail(describe(place) + " cannot reach its target");
  write_relocation(place.kind, mapping_.data() + offset, at, value);
}

std::vector<LoadedObject::Symbol> Linker::placed_symbols(const CodeMapping& mapping) const {
  std::vector<LoadedObject::Symbol> found;
  for (const Elf64_Sym& symbol : object_.symbols()) {
    const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
    const bool external = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
    const bool function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (!defined || !(external || function) || !loaded_[symbol.st_shndx]) continue;
    void* address = mapping.data() + offsets_[symbol.st_shndx] + symbol.st_value;
    found.push_back({std::string(object_.name(symbol)), address, symbol.st_size, external});
  }
  return found;
}

}  // namespace

CodeMapping::CodeMapping(std::size_t size) : size_(round_up(size, page_size())) {
  if (size_ == 0) return;
  // Private to the process and written in place. Sharing pages between kernels would take two
  // mappings of one shared file, which a forked child would then write into its parent's code.
  void* made = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED)
    fail("no memory for " + std::to_string(size_) + " bytes of code: " + std::strerror(errno));
  data_ = static_cast<std::byte*>(made);
}

CodeMapping::~CodeMapping() {
  if (data_) munmap(data_, size_);
}

CodeMapping::CodeMapping(CodeMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

CodeMapping& CodeMapping::operator=(CodeMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void CodeMapping::seal(std::size_t code) {
  if (code == 0) return;
  auto* begin = reinterpret_cast<char*>(data_);
  if (mprotect(data_, code, PROT_READ | PROT_EXEC) != 0)
    fail(std::string("the system refuses to make memory executable: ") + std::strerror(errno));
  __builtin___clear_cache(begin, begin + code);
}

LoadedObject LoadedObject::load(std::span<const std::byte> file, const SymbolResolver& resolve) {
  const ElfObject object(file);
  if (object.machine() != host_machine)
    fail("it is for machine " + std::to_string(object.machine()) +
         " in ELF's numbering, this process runs on " + std::to_string(host_machine));
  Linker linker(object, resolve);
  CodeMapping mapping = linker.link();
  auto symbols = linker.placed_symbols(mapping);
  return {std::move(mapping), std::move(symbols)};
}

void* LoadedObject::address(std::string_view name) const {
  std::string defined;
  for (const Symbol& symbol : symbols_) {
    if (!symbol.external) continue;
    if (symbol.name == name) return symbol.address;
    defined += (defined.empty() ? "" : ", ") + symbol.name;
  }
  throw LoadError("the object defines no '" + std::string(name) + "', only: " + defined);
}

}  // namespace heterosis
