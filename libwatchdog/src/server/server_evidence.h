/// \file
/// Concludes what a model server does with the open requests, from samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// The result of one question to the server.
enum class Asked : std::uint8_t {
  unasked,
  unsupported,  ///< the server does not have it, or requires a key
  waiting,      ///< asked, without an answer yet
  refused,      ///< no process accepts the connection
  answered
};

/// Parameters of a request. An unreported one is absent. A plain value.
struct TaskParameters {
  std::optional<bool> stream{};
  std::optional<std::int64_t> seed{}, max_tokens{}, top_k{};
  std::optional<double> temperature{}, top_p{}, min_p{};
};
/// Returns false if a slot with parameters `shown` cannot work on a request with `asked`.
[[nodiscard]] bool may_be_of(const TaskParameters& asked, const TaskParameters& shown);

/// A slot of llama.cpp as `/slots` shows it. While it is not processing, its counters are those of
/// its previous task. A plain value.
struct SlotSample {
  int id = 0;
  bool is_processing = false;
  std::optional<std::int64_t> task{};
  std::optional<std::int64_t> prompt_read{};  ///< Older builds do not report it.
  std::optional<std::int64_t> written{};
  TaskParameters parameters{};
};

/// One sample of a server. Values that were not asked, or not reported, are absent. A plain value.
struct ServerSample {
  Instant at{};
  /// The cheapest question: health, properties, versions. An answer proves that the server is
  /// reachable, never that a request moves.
  Asked reachable = Asked::unasked;
  bool is_loading = false;   ///< It reports that it loads its model.
  bool is_sleeping = false;  ///< It unloaded its model, and a sample must not wake it.
  Asked slots = Asked::unasked;
  Millis slots_waiting{};  ///< Of `waiting`: the time so far.
  std::vector<SlotSample> slot{};
  Asked metrics = Asked::unasked;
  /// Running totals of decodes, prompt tokens and answer tokens, for all requests.
  std::optional<std::int64_t> decodes{}, prompt_total{}, written_total{};
  std::optional<std::int64_t> running{};  ///< Requests in work, and
  std::optional<std::int64_t> queued{};   ///< requests in the queue.
  std::optional<std::int64_t> started{};  ///< When its process began, in the server's own unit.
  /// Of its process and its descendants; absent: on another machine, or of another user.
  std::optional<Millis> cpu{};
  std::optional<std::int64_t> io_bytes{};      ///< Read so far.
  std::optional<std::int64_t> memory_bytes{};  ///< Resident.
  std::optional<int> gpu_percent{};            ///< Of the busiest.
  bool process_gone = false;                   ///< It was visible before and is gone.
  std::int64_t stopped = 0;  ///< Pid of a serving process in state T (stopped); 0: none.
};

/// An open request's own connection. Counters only rise. A plain value.
struct RequestSample {
  Instant since{};                 ///< When it was sent.
  std::int64_t pieces = 0;         ///< Of the answer, of any kind except pings.
  std::int64_t prompt_read = 0;    ///< As the stream reports it.
  std::int64_t prompt_tokens = 0;  ///< Likewise; 0: not reported.
  TaskParameters parameters{};
};

using RequestId = std::uint64_t;

/// How long nothing may move before a hang. It is counted in samples and in the time between them.
/// A late sample counts as a usual one, so a late observer suspects itself first. A plain value.
struct HangThresholds {
  int looks_min = 8;         ///< Samples in a row without any movement.
  Millis gap_prior{60'000};  ///< The expected gap between two movements,
                             ///< before its own longest gap is known.
  double gap_factor = 4;     ///< Times the longest gap seen, for reading and writing apart.
  double cpu_idle = 0.02;    ///< Of one core: a process below it is idle.
  int gpu_idle_percent = 3;  ///< Likewise of a GPU.
  int remote_factor = 4;     ///< Factor for all of this if no process is visible.
  /// After this many samples in a row with answers and an idle process, the process only forwards
  /// and proves nothing.
  int idle_moves_max = 3;
};

/// Decides when a server is sampled next, and whether that sample may ask it. Samples take at most
/// a tenth of the time, except questions without an answer: they are the first sign of a hang and
/// earn no pause. After one, samples look at the process alone, `look_every` apart, and the server
/// is asked again after 7.5 times that. Pure.
class ProbeRhythm {
 public:
  explicit ProbeRhythm(Millis look_every = Millis{2'000})
      : look_every_(look_every), interval_(look_every) {}

  /// A finished sample. A plain value.
  struct Look {
    Instant ended{};
    Millis took{};
    Millis in_vain{};         ///< The part of it spent on questions without an answer.
    bool changed = false;     ///< The state of some request changed.
    bool asked = false;       ///< It asked the server, not only the process.
    bool unanswered = false;  ///< A question has no answer.
  };
  void looked(const Look& look);
  /// The next sample comes as soon as the first one would.
  void hurry() { interval_ = look_every_; }
  [[nodiscard]] bool is_hurried() const { return interval_ == look_every_; }
  /// Returns the pause after the previous sample.
  [[nodiscard]] Millis wait() const { return std::max(interval_, pause_); }
  /// Returns false if a sample at `now` must not ask, because a question has no answer.
  [[nodiscard]] bool may_ask(Instant now) const { return now >= ask_at_; }
  /// The server is known to be alive: it may be asked.
  void ask_again() { ask_at_ = {}; }

 private:
  Millis look_every_, interval_;
  Millis pause_{};
  Instant ask_at_{};
};

/// The conclusion about one request. `why` is the proof, a sentence with numbers.
struct ServerFinding {
  RequestId request = 0;
  Evidence evidence{};
  std::string why{};
};

/// The memory of one server between samples. Bounded by the open requests and the shown slots.
/// Pure: no clock, no I/O; the same samples give the same findings. Use from one thread at a time.
///
/// A request moves if its own stream did, or a slot that no stream accounts for, or, without slots,
/// the server's totals. Counts of a slot are shown only if they can be of no other request, by the
/// time when its task was first seen and by its parameters. A request keeps its state for as long
/// as its server may need between two movements. After that it is `hung` only on a second sign.
/// These are the second signs:
///  * The server's process is idle.
///  * No slot works on the request although one was free, and the request is not queued.
///  * A slot that can only be its own stands still while others move.
///  * The server's process is not visible, and all working slots stand still. They do so for longer
///    than any of them has done before.
///  * The process is not visible, and the server has no slots. Its totals stand still while the
///    request is the only one that writes.
///  * The server counts queued requests and works on none, and its process is not busy.
/// A busy process alone makes it `working`, however long. One that is idle while answers come only
/// forwards them, and counts as not visible. A stopped process is hung at once. An answer of the
/// server is not a sign of movement. If it does not answer for longer than its longest gap, what is
/// known of its requests ends, unless its process is busy.
class ServerWatch {
 public:
  explicit ServerWatch(HangThresholds limits = {});
  ~ServerWatch();
  ServerWatch(ServerWatch&&) noexcept;
  ServerWatch& operator=(ServerWatch&&) noexcept;

  /// Takes a sample with the present state of its open requests, and returns a finding for each of
  /// them. REQUIRES: `sample.at` does not run backwards.
  [[nodiscard]] std::vector<ServerFinding> look(const ServerSample& sample,
                                                const std::map<RequestId, RequestSample>& open);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
