#include "facts/process.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "facts/digest.h"
#include "watchdog/session.h"

namespace watchdog {
namespace {

constexpr std::size_t stat_bytes = 2'048;
constexpr std::size_t name_bytes = 64;
/// Bytes of a list of children. It reads more than are shown, because some end meanwhile.
constexpr std::size_t children_bytes = 1'024;
/// Any thread may start a child. Children of further threads of the tree are not searched.
constexpr int threads_max = 64;

std::string folder_of(std::int64_t pid) {
  return "/proc/" + std::to_string(pid);
}

/// The first bytes of a file; empty where it cannot be read.
std::string beginning_of(const std::string& path, std::size_t bytes_max) {
  std::string text(bytes_max, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(bytes_max));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

void add_names(ProcessSample& process) {
  const auto folder = folder_of(process.pid);
  process.command = beginning_of(folder + "/comm", name_bytes);
  if (process.command.ends_with('\n')) process.command.pop_back();
  process.wchan = beginning_of(folder + "/wchan", name_bytes);
  if (process.wchan == "0") process.wchan.clear();
}

/// Adds the children that the kernel lists for one thread.
void add_children(const std::string& thread, std::vector<std::int64_t>& pids) {
  auto text = beginning_of(thread + "/children", children_bytes);
  if (text.size() == children_bytes) text.resize(text.rfind(' ') + 1);  // half a number
  std::istringstream numbers(text);
  for (std::int64_t pid = 0; numbers >> pid;) pids.push_back(pid);
}

std::vector<std::int64_t> children_of(const ProcessSample& process, int& threads_left) {
  std::vector<std::int64_t> pids;
  const auto threads = folder_of(process.pid) + "/task";
  if (process.threads == 1) {
    add_children(threads + "/" + std::to_string(process.pid), pids);
    return pids;
  }
  std::error_code trouble;
  auto thread = std::filesystem::directory_iterator(threads, trouble);
  const std::filesystem::directory_iterator end;
  for (; !trouble && thread != end && threads_left > 0; --threads_left) {
    add_children(thread->path().string(), pids);
    thread.increment(trouble);
  }
  return pids;
}

}  // namespace

std::optional<ProcessSample> process_at(std::int64_t pid) {
  const auto line = beginning_of(folder_of(pid) + "/stat", stat_bytes);
  // The name in field 2 may hold anything, also parentheses, blanks and newlines.
  const auto after_name = line.rfind(") ");
  if (after_name == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(after_name + 2));
  ProcessSample process{.pid = pid};
  std::int64_t user = 0;
  std::int64_t kernel = 0;
  std::string skipped;
  const auto skip = [&](int count) {
    while (count-- > 0) fields >> skipped;
  };
  // proc(5): fields 3 to 7, 14, 15, 20 and 22.
  fields >> process.state >> process.parent >> process.group >> process.session >> process.terminal;
  skip(6);
  fields >> user >> kernel;
  skip(4);
  fields >> process.threads >> skipped >> process.start_ticks;
  if (!fields) return std::nullopt;
  static const std::int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
  process.cpu = Millis{(user + kernel) * 1'000 / ticks_per_second};
  return process;
}

std::string machine_identity() {
  const auto id = beginning_of("/etc/machine-id", name_bytes);
  // The id itself is to stay on the machine.
  return id.size() < 32 ? std::string() : std::to_string(digest_of("watchdog " + id));
}

std::optional<ProcessTree> process_tree(const ProcessFacts& process) {
  // A zombie does not run, and is there to be seen.
  if (!is_running(process)) return std::nullopt;
  auto root = process_at(process.pid);
  if (!root || (process.start_ticks != 0 && process.start_ticks != root->start_ticks))
    return std::nullopt;
  add_names(*root);
  ProcessTree tree{.root = std::move(*root)};
  auto& children = tree.children;
  std::vector<ProcessSample> level{tree.root};
  int threads_left = threads_max;
  for (int depth = 0; depth < ProcessTree::levels_max; ++depth) {
    std::vector<ProcessSample> below;
    for (const auto& parent : level) {
      if (children.size() + below.size() == ProcessTree::children_max) break;
      for (const auto pid : children_of(parent, threads_left)) {
        if (children.size() + below.size() == ProcessTree::children_max) break;
        auto child = process_at(pid);
        if (!child || child->parent != parent.pid) continue;  // it ended meanwhile
        add_names(*child);
        below.push_back(std::move(*child));
      }
    }
    children.insert(children.end(), below.begin(), below.end());
    level = std::move(below);
  }
  return tree;
}

}  // namespace watchdog
