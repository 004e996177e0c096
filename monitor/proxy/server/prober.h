/// \file
/// Samples one model server while our requests are open there, and reports what it does.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "net/url.h"
#include "server/server_evidence.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// Thread-safe. Looks only while a request is open, with one question of a kind under way at most,
/// and spends at most a tenth of its time on it.
class Prober {
 public:
  struct Options {
    Url server;           ///< Without `/v1`.
    std::string api_key;  ///< Sent with questions; empty: none.
    std::filesystem::path ca_file{};
    Millis look_every{2'000};  ///< At first; rarer while nothing changes, to 15 s.
    /// The least time between two questions for llama.cpp's slots, whatever `look_every` is. If it
    /// is asked more than once a second, llama.cpp does not notice that a client hung up. It then
    /// goes on with the client's request.
    Millis slots_apart{1'500};
    HangThresholds limits{};
  };
  /// Gets what became known of a request, from the prober's thread: each change of its state, and
  /// of its numbers with each look.
  using Listener = std::function<void(const ServerFinding&)>;

  /// Errors: `invalid` (the CA file).
  [[nodiscard]] static Result<std::unique_ptr<Prober>> start(Options options, Listener listener);
  /// Ends what it asks at once.
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  /// Returns true for llama.cpp, which reports prompt progress on request. Found out at once at the
  /// start, and again with requests while the server has not answered.
  [[nodiscard]] bool shows_progress() const;

  /// A request was sent, with these parameters; what its connection shows now, whenever that
  /// changed; it is over.
  void opened(RequestId request, const TaskParameters& parameters = {});
  void moved(RequestId request, const RequestSample& sample);
  void closed(RequestId request);

 private:
  struct State;
  explicit Prober(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
