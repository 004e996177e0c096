/// \file
/// Messages between the helper program `watchdog-exec` and its host.
#pragma once

#include <array>
#include <cstdint>

namespace watchdog {

/// The helper's end of the channel, a socket that keeps messages apart (SOCK_SEQPACKET). Closing
/// the other end means `stop`: the program ends with its host, however that ends.
inline constexpr int exec_channel = 3;

/// Both are built from the same sources, so it goes over as it lies in memory. A plain value.
struct ExecMessage {
  enum class Kind : std::int32_t {
    start,   ///< To the helper: begin. Until then it cannot end unseen.
    stop,    ///< To the helper: end all of it.
    settle,  ///< To the helper: the leader's output is read, see to what outlived it.

    no_process,    ///< It could not be started; `number`: errno.
    no_directory,  ///< Its directory could not be entered; `number`: errno.
    no_program,    ///< It could not be executed; `number`: errno.
    exited,        ///< The leader; `number`: as waitpid(2) has it.
    survivor,      ///< One of them; `number`: its pid, `name`.
    done,          ///< The last message; `number`: survivors, `killed` of them, and `left`.
  };

  Kind kind = Kind::start;
  std::int32_t number = 0;
  std::int32_t killed = 0;
  std::int32_t left = 0;        ///< Alive in spite of SIGKILL.
  std::array<char, 16> name{};  ///< Ends with a NUL.
};

}  // namespace watchdog
