/// \file
/// A proxy and who writes down what it sees, made of the settings.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "api/gate.h"
#include "proxy/proxy.h"
#include "proxy/scribe.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Thread-safe.
class PassThrough {
 public:
  /// `gate` says who may come. Errors: `invalid` (settings, files), `unavailable` (the port).
  [[nodiscard]] static Result<std::unique_ptr<PassThrough>> start(const Settings& settings,
                                                                  Gate gate,
                                                                  Scribe::Options scribe);
  ~PassThrough();
  PassThrough(const PassThrough&) = delete;
  PassThrough& operator=(const PassThrough&) = delete;

  [[nodiscard]] const Proxy& proxy() const noexcept { return *proxy_; }
  /// Accepts nothing new; requests that are open go on.
  void stop();
  /// Returns, after stop(), when their answers are through. Says what it waits for.
  void wait_until_done();

 private:
  PassThrough() = default;
  std::unique_ptr<Scribe> scribe_;
  std::unique_ptr<class Access> access_;
  std::unique_ptr<Proxy> proxy_;
};

/// What agents are to use instead of the model server's address, in a sentence.
[[nodiscard]] std::string base_url_advice(const Proxy& proxy);

}  // namespace watchdog::monitor
