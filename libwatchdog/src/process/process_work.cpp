// Processes come and go between two looks, so each is compared with itself. One that is new counts
// with all that it used. The CPU time of one that was reaped is in its parent's.
#include "process/process_work.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "facts/process.h"
#include "process/descendants.h"

namespace watchdog {
namespace {

/// Bytes that it read from disks and wrote to them; 0 if they are not accessible.
std::int64_t io_bytes_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/io");
  std::int64_t sum = 0;
  std::string name;
  for (std::int64_t bytes = 0; file >> name >> bytes;)
    if (name == "read_bytes:" || name == "write_bytes:") sum += bytes;
  return sum;
}

/// Leaves out children that were started before, and what is below them.
std::vector<Descendant> counted(std::vector<Descendant> all, pid_t ancestor,
                                unsigned long long started_from) {
  if (started_from == 0) return all;
  std::set<pid_t> older;
  const auto is_older = [&](const Descendant& process) {
    const bool is_child = process.parent == ancestor;
    return is_child ? process.start_ticks < started_from : older.contains(process.parent);
  };
  // A child's number may be lower than its parent's.
  for (bool more = true; more;) {
    more = false;
    for (const auto& process : all)
      if (is_older(process) && older.insert(process.pid).second) more = true;
  }
  std::erase_if(all, is_older);
  return all;
}

}  // namespace

ProcessWork::ProcessWork(pid_t ancestor, Millis now, unsigned long long started_from)
    : ancestor_(ancestor), started_from_(started_from), looked_at_(now), used_(used()) {}

std::map<pid_t, ProcessWork::Use> ProcessWork::used() const {
  std::map<pid_t, Use> use;
  for (const auto& process : counted(listed_descendants_of(ancestor_), ancestor_, started_from_))
    use.emplace(process.pid, Use{.start_ticks = process.start_ticks,
                                 .cpu = Millis{process.cpu_ms},
                                 .io_bytes = io_bytes_of(process.pid)});
  return use;
}

bool ProcessWork::look(Millis now) {
  auto use = used();
  Millis cpu{};
  std::int64_t io_bytes = 0;
  for (const auto& [pid, newest] : use) {
    const auto found = used_.find(pid);
    const bool is_known = found != used_.end() && found->second.start_ticks == newest.start_ticks;
    const auto before = is_known ? found->second : Use{};
    cpu += std::max(newest.cpu - before.cpu, Millis{0});
    io_bytes += std::max<std::int64_t>(newest.io_bytes - before.io_bytes, 0);
  }
  used_ = std::move(use);
  const auto time = now - looked_at_;
  looked_at_ = now;
  return is_work(cpu, io_bytes, time);
}

}  // namespace watchdog
