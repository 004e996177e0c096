// Asks by the HTTP client of Go. Lines are those of raw_clients.py.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const patience = 120 * time.Second

func ask(client *http.Client, url, body string) (int, []byte) {
	answer, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil { // the test shows it
		return 0, []byte(err.Error())
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return answer.StatusCode, text
}

func main() {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
	var writing sync.Mutex
	var open sync.WaitGroup
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		job := strings.SplitN(lines.Text(), "\t", 4)
		open.Add(1)
		go func() {
			defer open.Done()
			status, text := ask(client, job[2], job[3])
			writing.Lock()
			defer writing.Unlock()
			fmt.Printf("%s\t%d\t%s\n", job[0], status, base64.StdEncoding.EncodeToString(text))
		}()
	}
	open.Wait()
}
