#include "resources.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

namespace heterosis {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

int affinity() {
  for (int processors = 1024; processors <= 1 << 20; processors *= 2) {
    cpu_set_t* set = CPU_ALLOC(processors);
    if (!set) break;
    const std::size_t size = CPU_ALLOC_SIZE(processors);
    const int result = sched_getaffinity(0, size, set);
    const int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// A number, or unlimited for anything else ("max", a missing file).
int64_t number(const std::optional<std::string>& text) {
  int64_t value = 0;
  if (!text || !(std::istringstream(*text) >> value)) return kUnlimited;
  return value;
}

// The control group of the process in one hierarchy, and all its ancestors. A container may see
// only its own group, mounted as the root, under a path that names it from outside: then the
// longer folders do not exist, and reading there finds nothing.
std::vector<std::string> group_folders(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  while (!path.empty() && path != "/") {
    folders.push_back(mount + path);
    path.resize(path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

struct Group {
  bool unified;  // version 2
  std::vector<std::string> folders;
};

bool lists_controller(const std::string& names, const std::string& controller) {
  return ("," + names + ",").find("," + controller + ",") != std::string::npos;
}

std::vector<Group> groups(const std::string& root, const std::string& controller) {
  std::vector<Group> found;
  std::ifstream file(root + "/proc/self/cgroup");  // lines: number:controllers:path
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const std::string mounts = root + "/sys/fs/cgroup";
    if (names.empty()) {
      found.push_back({true, group_folders(mounts, path)});
      found.push_back({true, group_folders(mounts + "/unified", path)});
    } else if (lists_controller(names, controller)) {
      found.push_back({false, group_folders(mounts + "/" + controller, path)});
    }
  }
  return found;
}

// Processors' worth of time that a period allows, rounded up.
int64_t processors_of(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0 || quota == kUnlimited) return kUnlimited;
  return (quota + period - 1) / period;
}

int64_t cpu_limit(const Group& group, const std::string& folder) {
  if (!group.unified) {
    return processors_of(number(first_line(folder + "/cpu.cfs_quota_us")),
                         number(first_line(folder + "/cpu.cfs_period_us")));
  }
  std::istringstream text(first_line(folder + "/cpu.max").value_or("max"));  // "quota period"
  int64_t quota = 0;
  int64_t period = 0;
  return text >> quota >> period ? processors_of(quota, period) : kUnlimited;
}

int64_t memory_limit(const Group& group, const std::string& folder) {
  return number(first_line(folder + (group.unified ? "/memory.max" : "/memory.limit_in_bytes")));
}

template <typename Limit>
int64_t least(const std::vector<Group>& groups, Limit limit) {
  int64_t least = kUnlimited;
  for (const Group& group : groups) {
    for (const std::string& folder : group.folders) least = std::min(least, limit(group, folder));
  }
  return least;
}

int64_t machine_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kilobytes = 0;
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

}  // namespace

int usable_processors(const std::string& root) {
  const int64_t quota = least(groups(root, "cpu"), cpu_limit);
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(affinity(), quota)));
}

int64_t available_memory(const std::string& root) {
  return std::min(machine_memory(root), least(groups(root, "memory"), memory_limit));
}

}  // namespace heterosis
