/// \file
/// Server-sent events: first how things are, then what happens, from any place on.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/message.h"
#include "core/backend.h"
#include "core/feed.h"

namespace watchdog::monitor {

/// The contents of a stream. A plain value.
struct StreamOptions {
  std::string session;  ///< Only of this one; empty: of all.
  SessionKey key = observer_key;
  bool events = true;
  bool transitions = true;
  bool sessions = true;         ///< How they look, at most once a second each.
  bool summary = false;         ///< How many there are of each state, likewise.
  std::optional<Cursor> after;  ///< Goes on after it; empty: from now on.
  /// Returns false when the client's permission has ended; null: no check. From any thread.
  std::function<bool()> allowed{};
};

/// One listener's stream. Each record comes exactly once and in order, also over restarts of the
/// monitor, as long as the file keeps it. A slow reader gets records from the file, and skips rows
/// of sessions in between.
class Stream final : public BodySource, public std::enable_shared_from_this<Stream> {
 public:
  /// Both must outlive it.
  Stream(Backend& backend, Feed& feed, StreamOptions options)
      : backend_(backend), feed_(feed), options_(std::move(options)) {}

  void begin(std::function<void()> wake) override;
  [[nodiscard]] std::vector<Piece> drain() override;
  [[nodiscard]] bool allowed() override { return !options_.allowed || options_.allowed(); }

 private:
  using Task = Result<void> (Stream::*)(StoreReader&);
  void start(Task task);
  Result<void> read_snapshot(StoreReader& reader);
  Result<void> read_replay(StoreReader& reader);
  Result<void> read_document(StoreReader& reader);
  Result<void> place(StoreReader& reader);
  Result<std::string> document(StoreReader& reader) const;
  void drain_live(std::vector<Piece>& pieces);
  void add(std::string text);

  Backend& backend_;
  Feed& feed_;
  const StreamOptions options_;
  std::function<void()> wake_;
  std::shared_ptr<Feed::Listener> listener_;

  std::mutex mutex_;  ///< Guards the next two.
  std::vector<Piece> pending_;
  bool reading_ = false;

  // Used by the reading thread while one reads, else by the one that takes:
  Cursor cursor_;  ///< The place of the stream.
  bool snapshot_due_ = true;
  bool live_ = false;  ///< The feed continues after the cursor.
  bool resumed_ = false;
  bool missed_ = false;
  SessionKey below_ = 0;  ///< Where the snapshot continues.
  int rows_sent_ = 0;
};

}  // namespace watchdog::monitor
