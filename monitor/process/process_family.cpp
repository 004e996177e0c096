// A process counts as a member if its parent is one. A parent that ended hands its children to
// another process, so members are remembered by pid and start. Orphans are found in two ways. A new
// session is empty, so all that is in one descends from its leader; the kernel gives the number to
// no other process meanwhile. And if all processes of a group were members, then no other program
// could put one into it. A group that has a stranger proves nothing, and is never used.
#include "process/process_family.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t command_line_bytes_max = 4'096;
constexpr std::size_t command_shown_max = 160;

std::string process_path(std::int64_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

/// The first bytes of a file below /proc; empty: it is not accessible.
std::string head_of(const std::string& path) {
  std::string text(command_line_bytes_max, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool has_ended(const ProcessSample& process) {
  return process.state == 'Z' || process.state == 'X';
}

}  // namespace

std::vector<ProcessSample> processes_now() {
  std::vector<ProcessSample> all;
  std::error_code trouble;
  const std::filesystem::directory_iterator end;
  for (auto entry = std::filesystem::directory_iterator("/proc", trouble); !trouble && entry != end;
       entry.increment(trouble)) {
    const auto name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto process = process_at(std::stoll(name))) all.push_back(std::move(*process));
  }
  return all;
}

ProcessFamily::ProcessFamily(std::int64_t pid, std::int64_t start_ticks)
    : first_pid_(pid), first_start_(start_ticks) {}

bool ProcessFamily::has(const ProcessSample& process) const {
  const auto known = starts_.find(process.pid);
  return known != starts_.end() && known->second == process.start_ticks;
}

std::vector<ProcessSample> ProcessFamily::fold(const std::vector<ProcessSample>& all) {
  std::map<std::int64_t, const ProcessSample*> by_pid;
  for (const auto& process : all) by_pid.emplace(process.pid, &process);
  const auto belongs = [&](const ProcessSample& process) {
    if (process.pid == first_pid_) return process.start_ticks == first_start_;
    const auto parent = by_pid.find(process.parent);
    if (parent != by_pid.end() && has(*parent->second)) return true;
    if (own_sessions_.contains(process.session)) return true;
    const auto group = own_groups_.find(process.group);
    return group != own_groups_.end() && group->second == process.session &&
           process.start_ticks >= first_start_;
  };
  std::vector<ProcessSample> fresh;
  // A child's number may be lower than its parent's.
  for (bool more = true; more;) {
    more = false;
    for (const auto& process : all) {
      if (has_ended(process) || has(process) || !belongs(process)) continue;
      starts_[process.pid] = process.start_ticks;
      if (process.session == process.pid) own_sessions_.insert(process.pid);
      members_.push_back(process);
      fresh.push_back(process);
      more = true;
    }
  }
  learn_groups(all);
  return fresh;
}

void ProcessFamily::learn_groups(const std::vector<ProcessSample>& all) {
  for (const auto& process : all)
    if (has(process)) own_groups_[process.group] = process.session;
  for (const auto& process : all)
    if (!has(process) && !has_ended(process)) own_groups_.erase(process.group);
}

std::vector<ProcessSample> ProcessFamily::running(const std::vector<ProcessSample>& all) const {
  std::map<std::int64_t, const ProcessSample*> by_pid;
  for (const auto& process : all) by_pid.emplace(process.pid, &process);
  std::vector<ProcessSample> found;
  for (const auto& member : members_) {
    const auto now = by_pid.find(member.pid);
    if (now != by_pid.end() && now->second->start_ticks == member.start_ticks &&
        !has_ended(*now->second))
      found.push_back(*now->second);
  }
  return found;
}

std::vector<std::string> words_of_process(std::int64_t pid) {
  std::vector<std::string> words;
  std::istringstream text(head_of(process_path(pid, "cmdline")));
  for (std::string word; std::getline(text, word, '\0');) words.push_back(word);
  return words;
}

std::string command_line_of(std::int64_t pid) {
  std::string line;
  for (const auto& word : words_of_process(pid)) line += (line.empty() ? "" : " ") + word;
  if (line.empty()) {
    line = head_of(process_path(pid, "comm"));
    if (line.ends_with('\n')) line.pop_back();
  }
  line = redact(line);
  if (line.size() <= command_shown_max) return line;
  return std::string(first_characters(line, command_shown_max)) + "…";
}

std::string process_user(std::int64_t pid) {
  struct stat status {};
  if (stat(process_path(pid, "").c_str(), &status) != 0) return "?";
  const auto number = std::to_string(status.st_uid);
  // A static program cannot load the modules that know further users.
  std::ifstream users("/etc/passwd");
  for (std::string line; std::getline(users, line);) {
    std::istringstream fields(line);
    std::string name, password, id;
    std::getline(std::getline(std::getline(fields, name, ':'), password, ':'), id, ':');
    if (id == number) return name;
  }
  return number;
}

bool is_login_shell(const ProcessSample& process, const std::vector<std::string>& words) {
  static constexpr std::string_view shells[] = {"sh",  "bash",   "dash", "zsh", "fish",
                                                "ksh", "mksh",   "ash",  "csh", "tcsh",
                                                "nu",  "elvish", "xonsh"};
  if (process.session != process.pid || process.terminal == 0 || words.empty()) return false;
  std::string_view name = words.front();
  name = name.substr(name.rfind('/') + 1);
  const bool is_login = name.starts_with('-');
  if (is_login) name.remove_prefix(1);
  if (std::ranges::find(shells, name) == std::end(shells)) return false;
  // A shell with a script or a command is a program; its options may be anything else.
  for (std::size_t at = 1; !is_login && at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "--rcfile" || word == "--init-file" || word == "-o" || word == "+o") {
      ++at;
    } else if (!word.starts_with('-') && !word.starts_with('+')) {
      return false;
    } else if (!word.starts_with("--") && word.find('c') != std::string_view::npos) {
      return false;
    }
  }
  return true;
}

int send_signal_to(const ProcessSample& process, int signal) {
  const auto pid = static_cast<pid_t>(process.pid);
  // The descriptor is opened before the look, so that the look is at what gets the signal.
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const int no_handle = errno;
  const auto now = process_at(process.pid);
  const bool same = now && now->start_ticks == process.start_ticks;
  int error = 0;
  if (!same) {
  } else if (handle >= 0) {
    error = syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0) == 0 ? 0 : errno;
  } else if (no_handle == ENOSYS) {
    error = kill(pid, signal) == 0 ? 0 : errno;
  }
  if (handle >= 0) close(handle);
  return error == ESRCH ? 0 : error;
}

}  // namespace watchdog::monitor
