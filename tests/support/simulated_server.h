/// \file
/// The inside of a model's server in virtual time: slots, a queue, batches, and what goes wrong
/// with them. No I/O and no clock: the same calls give the same server.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::test {

/// Whose manners it has (llama.cpp server README and its pull requests 15827, 23454, 23884, 24013
/// and 27041; Ollama 0.30; vLLM metrics).
enum class ServerBuild : std::uint8_t {
  llama_cpp,       ///< answers about its slots while a batch runs
  llama_cpp_2025,  ///< does not, and shows less; its head comes with the first token
  ollama,          ///< loads with the first request, and says nothing until the first token
  vllm             ///< counts a prompt when it is read whole; while loading it has no port
};

/// The abilities of the machine and its model. A plain value.
struct SimulatedModel {
  ServerBuild build = ServerBuild::llama_cpp;
  int slots = 1;
  std::int64_t context = 1'000'000;  ///< Tokens.
  std::int64_t batch = 2'048;        ///< Tokens of prompts read in one go.
  double read_rate = 500;            ///< Tokens of a prompt a second.
  double write_rate = 20;            ///< Tokens of an answer a second, of each slot.
  double jitter = 0;                 ///< 0.2: each batch takes 80 … 120 % of that.
  Millis loading{0};                 ///< How long its model takes to load.
  Millis sleep_after{0};             ///< Idle for this time, it unloads its model; 0: never.
  Millis ping_every{30'000};  ///< Comments while silent, from builds that have them; 0: none.
  double busy_cpu = 1;        ///< Cores that it uses while it works,
  double idle_cpu = 0.001;    ///< and while it does not.
};

enum class FaultKind : std::uint8_t {
  hang,          ///< a batch never ends
  stop,          ///< its process is stopped: connections are accepted, and nothing is answered
  stall_slot,    ///< one slot gets no further; the others do
  swallow,       ///< the next request is accepted, and never given to a slot
  restart,       ///< its process ends, and another takes its place
  gone,          ///< likewise, and none does
  truncate,      ///< the connection of a stream ends in the middle
  stream_error,  ///< "Compute error.": all slots are released with an error
  pause          ///< the whole machine stands still
};
enum class FaultPhase : std::uint8_t { any, reading, writing };

/// What goes wrong, once: as soon as it is `at`, and a request is that far.
struct SimulatedFault {
  FaultKind kind = FaultKind::hang;
  Instant at{};
  FaultPhase phase = FaultPhase::any;
  std::int64_t after = 0;     ///< Tokens, of that phase.
  std::uint64_t request = 0;  ///< Whose; 0: anybody's.
  bool slots_answer = false;  ///< Of a hang, of a build that can: `/slots` shows the same for ever.
  bool health_answers = true;  ///< Of a hang: what HTTP threads answer by themselves.
  double cpu = 0;              ///< Cores in use meanwhile: with one it is a livelock.
  bool shows = true;           ///< Of a stop: the process is in state T (not frozen otherwise).
  Millis lasts{0};             ///< Of a pause; of a restart, until the port is open again.
};

/// A plain value.
struct SimulatedRequest {
  std::int64_t prompt = 100;
  std::int64_t cached = 0;  ///< The number of its tokens that need not be read again.
  std::int64_t answer = 10;
  bool stream = true;
  bool return_progress = false;
};

enum class PieceKind : std::uint8_t {
  head,      ///< status 200 and headers
  progress,  ///< of the prompt
  token,
  ping,
  done,     ///< the answer is whole
  error,    ///< with `status`, or within the stream where the head has gone out
  cut,      ///< the connection ends as if the answer were whole
  lost,     ///< the connection breaks
  refused,  ///< there was none
};

/// One part of an answer, as a request's connection gets it. A plain value.
struct Piece {
  Instant at{};
  PieceKind kind = PieceKind::head;
  std::int64_t read = 0;  ///< Of the prompt, with what was cached,
  std::int64_t cached = 0;
  std::int64_t total = 0;
  std::int64_t written = 0;  ///< Tokens of the answer by now.
  int status = 0;
  std::string_view message;  ///< Of an error.
  std::string_view type;     ///< Likewise, as llama.cpp names it.
};

/// A slot as the server sees it; while it does not process, that of its task before.
struct SlotView {
  bool is_processing = false;
  std::optional<std::int64_t> task{};
  std::int64_t in_context = 0;  ///< Tokens there by now.
  std::int64_t read = 0;        ///< Of the prompt, without what was cached.
  std::int64_t cached = 0;
  std::int64_t written = 0;
  std::int64_t answer = 0;  ///< At most.
  bool stream = true;
};

/// The state that the server would report of itself. A plain value.
struct ServerView {
  bool is_refused = false;  ///< Nobody accepts connections: nothing else counts.
  bool is_loading = false;
  bool is_sleeping = false;
  std::vector<SlotView> slots;
  std::int64_t decodes = 0, prompt_total = 0, written_total = 0;
  std::int64_t running = 0, queued = 0;
  std::int64_t started = 0;  ///< Seconds; rises with each process.
};

/// The facts that the operating system knows of its process. A plain value.
struct ProcessView {
  bool is_there = true;
  bool is_stopped = false;  ///< State T.
  Millis cpu{};
  std::int64_t io_bytes = 0;
  std::int64_t memory_bytes = 0;
};

enum class Question : std::uint8_t {
  health,  ///< and whatever else an HTTP thread answers by itself
  slots,   ///< what the loop of the inference has to answer
  metrics
};

/// Use from one thread at a time.
class SimulatedServer {
 public:
  explicit SimulatedServer(SimulatedModel model, Instant start = Instant{}, unsigned seed = 1);

  /// Lets time pass. Earlier than now: nothing.
  void advance(Instant to);
  [[nodiscard]] Instant now() const { return Instant{Millis{static_cast<std::int64_t>(time_)}}; }
  /// When something happens next by itself; `never`: nothing does.
  [[nodiscard]] Instant next() const;

  /// A request comes now. Its number is never used again.
  [[nodiscard]] std::uint64_t submit(const SimulatedRequest& request);
  /// Its client has gone: noticed between two batches.
  void cancel(std::uint64_t request);
  /// The pieces that the request's connection got since the last call.
  [[nodiscard]] std::vector<Piece> received(std::uint64_t request);

  /// A question comes now.
  [[nodiscard]] std::uint64_t ask(Question question);
  /// Nothing: not answered yet. Each answer is given once.
  [[nodiscard]] std::optional<ServerView> answer(std::uint64_t asked);
  /// Nobody waits for it any longer.
  void withdraw(std::uint64_t asked);

  [[nodiscard]] ProcessView process() const;
  /// What it is inside, for tests: not what it would answer.
  [[nodiscard]] ServerView view() const;
  [[nodiscard]] const SimulatedModel& model() const { return model_; }

  /// From now on it is like this. Another build, or another number of slots, is a restart.
  void set(const SimulatedModel& model);
  void fail(const SimulatedFault& fault) { faults_.push_back(fault); }
  /// A fault has come true.
  [[nodiscard]] bool has_failed() const { return failed_; }
  /// Those that came true are over, the others will not come.
  void mend();

 private:
  using Ms = double;  // a batch may take less than a millisecond
  static constexpr Ms forever = std::numeric_limits<Ms>::infinity();

  struct Served {
    SimulatedRequest wanted;
    std::int64_t read = 0;  // with what was cached
    std::int64_t written = 0;
    std::int64_t in_batch = 0;  // of its prompt, in the batch that runs
    bool head = false, over = false, cancelled = false;
    Ms sent = 0;
    std::vector<Piece> pieces;
  };
  struct Holder {
    std::uint64_t request = 0;  // 0: idle
    bool stalled = false;
    bool in_batch = false;
    SlotView shown;
  };
  enum class Up : std::uint8_t { down, loading, unloaded, asleep, waking, ready };

  void boot(Ms port_open);
  void load(Up how);
  void end_process(bool comes_back, Millis lasts);
  void between_batches();
  void begin_batch();
  void end_batch();
  void fill_slots();
  void apply_faults();
  [[nodiscard]] Holder* victim_of(const SimulatedFault& fault);
  [[nodiscard]] bool is_due(const SimulatedFault& fault);
  void apply(const SimulatedFault& fault);
  void step_of(Holder& slot, Served& served);
  void release(Holder& slot);
  void give(Served& served, PieceKind kind, int status = 0, std::string_view message = {},
            std::string_view type = {});
  void send_head(Served& served);
  void ping(Served& served, Ms until);
  void spend(Ms until);
  [[nodiscard]] bool can_answer(Question question) const;
  [[nodiscard]] Ms next_time() const;
  [[nodiscard]] Ms next_ping(const Served& served) const;
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] bool has_pings() const;

  SimulatedModel model_;
  std::mt19937_64 random_;
  Ms time_;
  Up up_ = Up::down;
  Ms up_at_ = forever;      // when loading is over, or the port is open
  Ms batch_end_ = forever;  // of the batch that runs; `hung_` ones have none
  bool batch_runs_ = false;
  Ms frozen_until_ = 0;
  Ms idle_since_ = 0;
  std::optional<SimulatedFault> hang_;
  double swallowed_cpu_ = 0;
  bool failed_ = false;
  std::vector<SimulatedFault> faults_;
  std::vector<Holder> slots_;
  std::deque<std::uint64_t> queue_;
  std::map<std::uint64_t, Served> served_;
  std::map<std::uint64_t, std::pair<Question, std::optional<ServerView>>> asked_;
  std::uint64_t last_ = 0;
  std::int64_t task_ = 0;
  ServerView totals_;  // only its totals
  Ms cpu_ = 0;
  double io_ = 0;
  double loaded_ = 0;  // share of the model in memory
};

}  // namespace watchdog::test

namespace watchdog {
template <>
struct Names<test::ServerBuild> {
  static constexpr std::string_view all[] = {"llama_cpp", "llama_cpp_2025", "ollama", "vllm"};
};
template <>
struct Names<test::FaultKind> {
  static constexpr std::string_view all[] = {"hang",     "stop",         "stall_slot",
                                             "swallow",  "restart",      "gone",
                                             "truncate", "stream_error", "pause"};
};
template <>
struct Names<test::FaultPhase> {
  static constexpr std::string_view all[] = {"any", "reading", "writing"};
};
}  // namespace watchdog
