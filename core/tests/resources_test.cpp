#include "resources.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "check.h"

using namespace heterosis;

namespace {

// A folder that looks like the root of a machine, with the files given.
struct Machine {
  explicit Machine(const std::map<std::string, std::string>& files) {
    char name[] = "/tmp/heterosis-resources-XXXXXX";
    CHECK(mkdtemp(name));
    root = name;
    for (const auto& [path, text] : files) {
      std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
      std::ofstream(root + path) << text;
    }
  }
  ~Machine() { std::filesystem::remove_all(root); }
  std::string root;
};

const std::string kMeminfo = "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 8000 kB\n";

int processors() {
  cpu_set_t set;
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
  return CPU_COUNT(&set);
}

void the_real_files_are_read() {
  CHECK(usable_processors() >= 1 && usable_processors() <= processors());
  CHECK(available_memory() > 1 << 20);
}

void without_groups_the_machine_counts() {
  const Machine machine({{"/proc/meminfo", kMeminfo}});
  CHECK(usable_processors(machine.root) == processors());
  CHECK(available_memory(machine.root) == 8000 * 1024);
}

void version_2_and_its_ancestors() {
  const Machine machine({{"/proc/meminfo", kMeminfo},
                         {"/proc/self/cgroup", "0::/a/b\n"},
                         {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                         {"/sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
                         {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
                         {"/sys/fs/cgroup/a/memory.max", "1000000\n"}});
  CHECK(usable_processors(machine.root) == 1);
  CHECK(available_memory(machine.root) == 1000000);
}

void version_1() {
  const Machine machine({{"/proc/meminfo", kMeminfo},
                         {"/proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n"},
                         {"/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000\n"},
                         {"/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"},
                         {"/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2000000\n"}});
  CHECK(usable_processors(machine.root) == 1);
  CHECK(available_memory(machine.root) == 2000000);
}

// As in a container: the path is the host's, the files are mounted at the root.
void version_1_seen_from_inside() {
  const Machine machine({{"/proc/meminfo", kMeminfo},
                         {"/proc/self/cgroup", "3:cpu:/docker/123\n4:memory:/docker/123\n"},
                         {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                         {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
                         {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}});
  CHECK(usable_processors(machine.root) == processors());
  CHECK(available_memory(machine.root) == 8000 * 1024);
}

}  // namespace

int main() {
  return run_tests({TEST(the_real_files_are_read), TEST(without_groups_the_machine_counts),
                    TEST(version_2_and_its_ancestors), TEST(version_1),
                    TEST(version_1_seen_from_inside)});
}
