/// \file
/// Looks at one model server while requests of ours are open there, and tells what it does.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "watchdog/result.h"
#include "watchdog/server_evidence.h"
#include "watchdog/url.h"

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
    EvidencePatience patience{};
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

  /// True if it is llama.cpp: it says on demand how far a prompt is read. Found out at once when
  /// this starts, and again with requests for as long as nobody answered.
  [[nodiscard]] bool tells_progress() const;

  /// A request was sent; what its connection shows now, whenever that changed; it is over.
  void opened(RequestId request);
  void moved(RequestId request, const RequestSight& sight);
  void closed(RequestId request);

 private:
  struct State;
  explicit Prober(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
