/// \file
/// What a model's server does with the requests that are open, concluded from looks at it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/names.h"
#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog {

/// What became of one question to the server.
enum class Asked : std::uint8_t {
  unasked,
  unsupported,  ///< the server has no such thing, or wants a key for it
  waiting,      ///< asked, and not answered yet
  refused,      ///< nobody accepts the connection
  answered
};

/// A slot of llama.cpp as `/slots` shows it. While it is not processing the counters are those of
/// its task before. A plain value.
struct SlotSight {
  int id = 0;
  bool is_processing = false;
  std::optional<std::int64_t> task{};
  std::optional<std::int64_t> prompt_read{};  ///< Older builds do not tell.
  std::optional<std::int64_t> written{};
};

/// What one look at a server showed. What was not asked, or not told, is absent. A plain value.
struct ServerSight {
  Instant at{};
  /// Of whatever is cheapest: health, properties, versions. An answer proves that it is reachable,
  /// and never that anything moves.
  Asked reachable = Asked::unasked;
  bool is_loading = false;   ///< It says that it loads its model.
  bool is_sleeping = false;  ///< It unloaded its model, and must not be woken by looking.
  Asked slots = Asked::unasked;
  Millis slots_waiting{};  ///< Of `waiting`: for how long by now.
  std::vector<SlotSight> slot{};
  Asked metrics = Asked::unasked;
  /// Running totals: of decodes, prompt tokens and answer tokens. For whom is not told.
  std::optional<std::int64_t> decodes{}, prompt_total{}, written_total{};
  std::optional<std::int64_t> running{};  ///< Requests that it works on, and
  std::optional<std::int64_t> queued{};   ///< those that wait for that.
  std::optional<std::int64_t> started{};  ///< When its process began, in whatever unit it tells.
  /// Of its process and all below it; absent: on another machine, or somebody else's.
  std::optional<Millis> cpu{};
  std::optional<std::int64_t> io_bytes{};      ///< Read so far.
  std::optional<std::int64_t> memory_bytes{};  ///< Resident.
  std::optional<int> gpu_percent{};            ///< Of the busiest.
  bool process_gone = false;                   ///< It was there, and is not any more.
};

/// What an open request's own connection shows. Counters only rise. A plain value.
struct RequestSight {
  Instant since{};                 ///< When it was sent.
  std::int64_t pieces = 0;         ///< Of the answer, of whatever kind; pings are none.
  std::int64_t prompt_read = 0;    ///< As the stream tells of its progress.
  std::int64_t prompt_tokens = 0;  ///< Likewise; 0: not told.
};

using RequestId = std::uint64_t;

/// How long nothing may move. It is counted in looks and in the time between them: no look that
/// came late counts for more than a usual one, so that who looks suspects itself first. A plain
/// value.
struct EvidencePatience {
  int looks_min = 8;         ///< At least so many looks in a row without any movement.
  Millis gap_prior{60'000};  ///< What a server may need from one movement to the next,
                             ///< before its own longest gap is known.
  double gap_factor = 4;     ///< Times the longest gap that was seen, of reading and writing apart.
  double cpu_idle = 0.02;    ///< Of one core: below it a process does nothing.
  int gpu_idle_percent = 3;  ///< Likewise of a GPU.
  int remote_factor = 4;     ///< Times all of this where no process can be seen.
  /// So many looks in a row with answers and an idle process, and they are not of its making: it
  /// passes on what another machine does, and is no witness.
  int idle_moves_max = 3;
};

/// Concluded of one request. `why` proves it in a sentence for people, with numbers.
struct ServerFinding {
  RequestId request = 0;
  Evidence evidence{};
  std::string why{};
};

/// What is remembered of one server from look to look. Bounded by the requests that are open and
/// the slots that it shows. Pure: no clock, no I/O; the same looks give the same findings. Use from
/// one thread at a time.
///
/// A request moves if its own stream did, or a slot of the server that no stream accounts for, or,
/// where the server shows no slots, its running totals. It stays what it was for as long as its
/// server may need from one movement to the next. Beyond, it is `hung` only on a second sign: its
/// server's process is idle; no slot works on it though the server could have given it one, and it
/// is not queued; a slot that can only be its own stands still while others move; or its process
/// cannot be seen, and all of its slots stand still at a pace that each of them has shown before,
/// or its totals while it writes for nobody else. A busy process alone makes
/// it `working`, however long, and one that is idle while answers come only passes them on, and
/// counts as not seen. That the server answers is no sign of anything.
class ServerWatch {
 public:
  explicit ServerWatch(EvidencePatience patience = {});
  ~ServerWatch();
  ServerWatch(ServerWatch&&) noexcept;
  ServerWatch& operator=(ServerWatch&&) noexcept;

  /// Takes a look at the server together with what its open requests showed by then, and concludes
  /// for each of them. REQUIRES: `sight.at` does not run backwards.
  [[nodiscard]] std::vector<ServerFinding> look(const ServerSight& sight,
                                                const std::map<RequestId, RequestSight>& open);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
