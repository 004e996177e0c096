/// \file
/// Sends sessions to a collector of OpenTelemetry.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "watchdog/result.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// The headers of a request, by name.
using ExportHeaders = std::vector<std::pair<std::string, std::string>>;

/// Reads `Name: value` lines. Errors: `invalid`: a line is not a header, or there are more than 16.
[[nodiscard]] Result<ExportHeaders> export_headers(std::string_view text);

/// Reads the file of `export.otlp.headers_file`; none without it. Errors: `invalid`: the file
/// cannot be read, others can read it, or it has a wrong line.
[[nodiscard]] Result<ExportHeaders> export_headers(const ExportSettings& settings);

/// Reads new events from the file and sends them as spans and log records. It has a thread of its
/// own, so neither the store nor an agent ever waits for the collector. It begins with the events
/// after its start. Items that the collector cannot take now wait in a queue of bounded size. A
/// full queue drops its oldest items, and counts them.
class OtlpExporter {
 public:
  struct Options {
    std::string endpoint;  ///< The collector's URL, without `/v1/traces`.
    ExportHeaders headers;
    std::filesystem::path database;
    std::string version;  ///< Of this program.
    Metrics* metrics = nullptr;
    /// Whether this process exports a session; empty: it exports all.
    std::function<bool(SessionKey)> judges{};
    std::function<Seq()> judged{};  ///< As ExportReader::Options has it.
    /// Gets what an operator should know, from the exporter's thread.
    std::function<void(const std::string&)> log;
    Millis every{1'000};  ///< Between two looks at the file.
    std::size_t queue_bytes_max = 8 * 1024 * 1024;
    Millis retry_first{1'000};
    Millis retry_longest{60'000};
  };

  explicit OtlpExporter(Options options);
  /// Sends what is complete, for some seconds at most.
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
