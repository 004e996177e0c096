#include "process/process_user.h"

#include <fstream>
#include <sstream>
#include <string>

namespace watchdog::monitor {
namespace {

/// The user in effect, and the depth of the namespace; empty: the process is gone. The kernel says
/// so of each process, also to other users.
std::string surroundings_of(pid_t pid) {
  std::ifstream lines("/proc/" + std::to_string(pid) + "/status");
  std::string user;
  int depth = 0;  // a kernel without such namespaces names none
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "Uid:") words >> word >> user;  // the real one, and the one in effect
    if (word != "NSpid:") continue;
    while (words >> word) ++depth;
  }
  return user.empty() ? user : user + " " + std::to_string(depth);
}

}  // namespace

bool acts_as(pid_t pid, pid_t other) {
  const auto surroundings = surroundings_of(pid);
  return !surroundings.empty() && surroundings == surroundings_of(other);
}

}  // namespace watchdog::monitor
