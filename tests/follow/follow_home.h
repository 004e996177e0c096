/// \file
/// A folder of transcripts, a store, and a follower between them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "follow/follower.h"
#include "ingest/joiner.h"
#include "store/store_reader.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog::monitor::test_follow {

inline std::string stamp_of(WallTime at) {
  const auto ms = at.time_since_epoch().count();
  const auto seconds = static_cast<std::time_t>(ms / 1'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                parts.tm_sec, static_cast<int>(ms % 1'000));
  return text.data();
}

inline void append(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}
inline void replace(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
inline void make_old(const std::filesystem::path& path, std::chrono::hours age) {
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
}

/// A folder of transcripts and a store.
class FollowHome {
 public:
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return root() / "p" / (name + ".jsonl");
  }
  [[nodiscard]] std::filesystem::path root() const { return dir_ / "projects"; }
  TranscriptFollower::Options options() {
    return {.sources = {{.agent = agent, .root = root()}},
            .positions = dir_ / "positions",
            .look_up = [this](const std::string& session) { return look_up(session); },
            .keep = [this](const Batch& batch) { return keep(batch); },
            .log = [this](const std::string& text) { log.push_back(text); }};
  }
  /// As a process that starts, reads what is there, and ends.
  FollowFigures read() { return read(options()); }
  FollowFigures read(TranscriptFollower::Options options) {
    auto follower = TranscriptFollower::start(std::move(options));
    EXPECT_TRUE(follower.ok()) << (follower ? "" : follower.error().message);
    const auto done = (*follower)->run_once();
    EXPECT_EQ(done.ok(), !away) << (done ? "" : done.error().message);
    return (*follower)->figures();
  }
  [[nodiscard]] std::vector<Event> events(const std::string& session) const {
    auto reader = StoreReader::open(dir_ / "w.db");
    EXPECT_TRUE(reader);
    return test::all_events(*reader, session);
  }
  [[nodiscard]] std::map<std::string, int> kinds(const std::string& session) const {
    std::map<std::string, int> kinds;
    for (const auto& event : events(session)) ++kinds[std::string(name_of(event.report.kind))];
    return kinds;
  }
  [[nodiscard]] bool exists(const std::string& session) const {
    auto reader = StoreReader::open(dir_ / "w.db");
    return reader && reader->session(session).ok();
  }
  [[nodiscard]] const test::TempDir& dir() const { return dir_; }
  Store& store() { return store_; }

  /// Stores a batch, as the follower and other sources do.
  Result<Receipt> keep(Batch batch) {
    if (away) return Error{ErrorCode::unavailable, "nobody is there"};
    joiner_.join(batch);
    ++kept;
    auto receipts = store_.append({&batch, 1});
    if (!receipts) return receipts.error();
    return receipts->front();
  }

  TranscriptAgent agent = TranscriptAgent::claude_code;
  std::vector<std::string> log;
  bool away = false;  ///< The monitor cannot be reached.
  int kept = 0;

 private:
  Result<FollowedSession> look_up(const std::string& session) {
    auto reader = StoreReader::open(dir_ / "w.db");
    if (!reader) return reader.error();
    const auto row = reader->session(session);
    if (!row) return FollowedSession{};
    auto newest = row->updated;
    if (!is_end(row->lifecycle))
      for (const auto& event : test::all_events(*reader, session)) newest = event.at;
    return FollowedSession{.exists = true, .has_ended = is_end(row->lifecycle), .newest = newest};
  }
  test::TempDir dir_;
  Store store_ = std::move(*Store::open({.database = dir_ / "w.db"}));
  Joiner joiner_;
};

}  // namespace watchdog::monitor::test_follow
