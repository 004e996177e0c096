/// \file
/// Questions to a model server about itself, which ask for no inference.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "llm/server_probe.h"
#include "net/http_client.h"

namespace watchdog::monitor {

/// The result of a question. A plain value.
struct ServerAnswer {
  Asked asked = Asked::unasked;
  HttpTrouble trouble = HttpTrouble::lost;  ///< Unless it was answered.
  std::string message{};                    ///< Likewise.
  int status = 0;
  std::string server{};                   ///< The header of that name.
  std::optional<std::int64_t> started{};  ///< llama.cpp's `Process-Start-Time-Unix`.
  bool from_internet = false;
  std::string body{};  ///< At most `probe_bytes_max`; a longer one is cut off.

  [[nodiscard]] bool is_good() const noexcept { return status == 200; }
};

/// Thread-safe.
class ServerQuestions {
 public:
  struct Options {
    Url server;           ///< Without `/v1`.
    std::string api_key;  ///< Sent as a bearer token; empty: none.
    std::filesystem::path ca_file{};
  };
  /// Errors: `invalid` (the key, the CA file).
  [[nodiscard]] static Result<ServerQuestions> to(Options options);

  /// `at_most`: nothing: until it is answered or `stop` is asked for.
  [[nodiscard]] ServerAnswer ask(std::string_view path, std::optional<Millis> at_most,
                                 const std::stop_token& stop = {});

  /// The kind of the server. A plain value.
  struct Found {
    std::optional<ServerKind> kind{};  ///< Nothing: no answer, or only from a gateway before it.
    ServerAnswer last{};               ///< The answer that showed it, or the failure.
  };
  /// Asks `probe_paths` in turn, all of them within 2 s.
  [[nodiscard]] Found find(const std::stop_token& stop = {});

 private:
  ServerQuestions(Options options, HttpClient http)
      : options_(std::move(options)), http_(std::move(http)) {}

  Options options_;
  HttpClient http_;
};

}  // namespace watchdog::monitor
