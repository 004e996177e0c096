/// \file
/// What there is to export of a store.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "export/span_maker.h"
#include "store/store_reader.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {

/// Reads the events and changes of health that were stored since it began, and makes items of them.
/// Use from one thread at a time.
class ExportReader {
 public:
  struct Options {
    std::filesystem::path database;
    /// Whether this process exports a session; empty: it exports all.
    std::function<bool(SessionKey)> judges{};
    /// Returns the newest event that was judged, as all before it. Later ones are read later: the
    /// span of a turn includes the changes of health that follow from its end. Empty: all are.
    std::function<Seq()> judged{};
  };
  explicit ExportReader(Options options) : options_(std::move(options)) {}
  ExportReader(const ExportReader&) = delete;
  ExportReader& operator=(const ExportReader&) = delete;

  /// Begins after the newest event, unless it has begun. False: the file cannot be opened.
  bool open();
  /// Returns what is new, a bounded number of items. An error ends it early; the next call goes on.
  [[nodiscard]] std::vector<ExportItem> read();

 private:
  void make(const std::vector<Event>& events, const std::vector<TransitionRow>& changes);

  Options options_;
  std::optional<StoreReader> reader_;
  Seq seq_ = 0;
  std::int64_t transition_ = 0;
  std::int64_t version_ = -1;
  SpanMaker maker_{[this](SessionKey key) -> std::optional<SessionRow> {
    auto row = reader_->session(key);
    return row ? std::optional(std::move(*row)) : std::nullopt;
  }};
};

}  // namespace watchdog::monitor
