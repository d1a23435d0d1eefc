package writes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// waits is the one plan that waits for a terminal.
func (s *server) waits(t testing.TB) confirm.Waiting {
	t.Helper()
	waiting, problems := confirm.Look(timeout(t), s.folder)
	if len(waiting) != 1 || len(problems) > 0 {
		t.Fatalf("waiting %+v, problems %v", waiting, problems)
	}
	return waiting[0]
}

// says checks a terminal's no.
func says(t testing.TB, err error, code string) {
	t.Helper()
	var wire *confirm.WireError
	if !errors.As(err, &wire) || wire.Code != code {
		t.Errorf("want %s, got %v", code, err)
	}
}

// TestTerminal goes the way of a client that shows no forms.
func TestTerminal(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	s.initialize(t, false)
	const tool = "promote_bundle"
	a, elsewhere := args{"gate": staging}, args{"gate": w.lane(t, nil)}
	w.Requests().Reset()
	got := s.call(t, tool, a)
	w.refused(t, got, required, "NoForm")
	if got.err == nil || len(got.err.HumanSteps) != 1 || got.err.HumanSteps[0].Command != "hecate-mcp confirm" || got.err.Confirmation == nil || got.err.Confirmation.ExpiresAt == nil {
		t.Fatalf("got %s", got)
	}
	x := s.waits(t)
	shown, err := x.Show(timeout(t))
	if err != nil || shown.Type != staging || shown.Principal != cluster.Promoter || shown.Client != "pipes 1" || !slices.Contains(shown.Lines, "  1. git-clone") {
		t.Errorf("shown %+v, %v", shown, err)
	}
	// Nothing in the result opens anything.
	sockets, err := filepath.Glob(s.folder + "/*.sock")
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	for _, key := range []string{x.ID, s.folder, filepath.Base(sockets[0]), fmt.Sprint(s.cmd.Process.Pid)} {
		if strings.Contains(got.raw, key) {
			t.Errorf("the result has %q: %s", key, got)
		}
	}
	// The folder and the socket are the user's only.
	for path, mode := range map[string]fs.FileMode{s.folder: 0o700, sockets[0]: 0o600, s.log: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}

	for _, name := range []string{"", "yes", "y", production, "Staging", staging + " ", staging + "\n" + production} {
		says(t, x.Accept(timeout(t), name), confirm.WireWrongName)
	}
	w.refused(t, s.call(t, tool, a), required, "Waiting")
	if err := x.Accept(timeout(t), staging); err != nil {
		t.Fatal(err)
	}
	says(t, x.Accept(timeout(t), staging), confirm.WireNotWaiting)
	// It is a yes to this call of this tool only, and to no answer of the model's.
	w.refused(t, s.call(t, tool, args{"gate": staging, "namespace": w.ns}), required, "NoForm")
	w.refused(t, s.call(t, tool, elsewhere), required, "NoForm")
	if n := len(w.all(t)); n > 0 {
		t.Fatalf("%d Passages", n)
	}
	if got = s.call(t, tool, a); got.err != nil || got.out["confirmedVia"] != "terminal" {
		t.Fatalf("the same call: %s", got)
	}
	p := w.passages(t, staging)
	if len(p) != 1 || p[0].Annotations[ops.AnnotationConfirmedVia] != "terminal" || p[0].Annotations[ops.AnnotationCallID] != x.ID || p[0].Spec.Actor != "mcp:"+cluster.Promoter {
		t.Errorf("Passages %+v", p)
	}
	w.Requests().Reset()
	w.refused(t, s.call(t, tool, a), tools.Refused, "CrossingInProgress")
	w.finish(t, p[0].Name, v1alpha1.PassageFailed)
	w.Requests().Reset()
	w.refused(t, s.call(t, tool, a), required, "NoForm")

	t.Run("declined", func(t *testing.T) {
		s := w.serve(t, cluster.Promoter)
		s.initialize(t, false)
		a := args{"gate": w.lane(t, nil)}
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, a), required, "NoForm")
		x := s.waits(t)
		if err := x.Decline(timeout(t)); err != nil {
			t.Fatal(err)
		}
		says(t, x.Accept(timeout(t), a["gate"].(string)), confirm.WireNotWaiting)
		w.refused(t, s.call(t, tool, a), declined, "Declined")
		raw, err := os.ReadFile(s.log)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		var asked, no struct{ Event, Plan, Title, Object string }
		if err := errors.Join(json.Unmarshal([]byte(lines[0]), &asked), json.Unmarshal([]byte(lines[len(lines)-1]), &no)); err != nil {
			t.Fatal(err)
		}
		if no.Event != "refused" || no.Plan == "" || no.Plan != asked.Plan || no.Title != asked.Title || no.Object != asked.Object {
			t.Errorf("the log says of the plan that was declined: %s", raw)
		}
		w.refused(t, s.call(t, tool, a), required, "NoForm")
	})

	t.Run("accepted, then changed", func(t *testing.T) {
		s := w.serve(t, cluster.Promoter)
		s.initialize(t, false)
		gate := w.lane(t, nil)
		a := args{"gate": gate}
		s.call(t, tool, a)
		if err := s.waits(t).Accept(timeout(t), gate); err != nil {
			t.Fatal(err)
		}
		w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[0].Uses = "http" })
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, a), tools.Drifted, "")
		w.refused(t, s.call(t, tool, a), required, "NoForm")
	})

	t.Run("waiting, then changed", func(t *testing.T) {
		s := w.serve(t, cluster.Promoter)
		s.initialize(t, false)
		gate := w.lane(t, nil)
		a := args{"gate": gate}
		s.call(t, tool, a)
		old := s.waits(t)
		w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[0].Uses = "http" })
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, a), required, "NoForm")
		says(t, old.Accept(timeout(t), gate), confirm.WireNotWaiting)
		if now := s.waits(t); now.ID == old.ID {
			t.Error("the old plan waits still")
		}
		w.refused(t, s.call(t, tool, a), required, "Waiting")
	})

	t.Run("accepted and left", func(t *testing.T) {
		s := w.serve(t, cluster.Promoter, "--confirm-ttl", "1s")
		s.initialize(t, false)
		a := args{"gate": w.lane(t, nil)}
		s.call(t, tool, a)
		if err := s.waits(t).Accept(timeout(t), a["gate"].(string)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, a), required, "NoForm")
	})

	t.Run("a restarted server", func(t *testing.T) {
		dir := home(t)
		a := args{"gate": w.lane(t, nil)}
		s := w.serveIn(t, dir, cluster.Promoter)
		s.initialize(t, false)
		s.call(t, tool, a)
		old := s.waits(t)
		if err := old.Accept(timeout(t), a["gate"].(string)); err != nil {
			t.Fatal(err)
		}
		s.stop()
		s = w.serveIn(t, dir, cluster.Promoter)
		s.initialize(t, false)
		if waiting, problems := confirm.Look(timeout(t), s.folder); len(waiting)+len(problems) > 0 {
			t.Errorf("after the restart: %v, %v", waiting, problems)
		}
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, a), required, "NoForm")
		if now := s.waits(t); now.ID == old.ID {
			t.Error("the same confirmation after a restart")
		}
	})

	t.Run("while a form stands open", func(t *testing.T) {
		s := w.serve(t, cluster.Promoter)
		a := args{"gate": w.lane(t, nil)}
		q := s.question(t, tool, a)
		if err := s.waits(t).Accept(timeout(t), a["gate"].(string)); err != nil {
			t.Fatal(err)
		}
		w.Requests().Reset()
		w.refused(t, s.second(t, tool, a, q.state, yes), expired, "Used")
		if got := s.first(t, tool, a); got.err != nil || got.out["confirmedVia"] != "terminal" {
			t.Errorf("without a state: %s", got)
		}
	})

	t.Run("two servers of one user", func(t *testing.T) {
		dir := home(t)
		one, two := w.serveIn(t, dir, cluster.Promoter), w.serveIn(t, dir, cluster.Promoter)
		a := args{"gate": w.lane(t, nil)}
		for _, s := range []*server{one, two} {
			s.initialize(t, false)
			s.call(t, tool, a)
		}
		waiting, problems := confirm.Look(timeout(t), one.folder)
		if len(waiting) != 2 || len(problems) > 0 {
			t.Fatalf("waiting %+v, %v", waiting, problems)
		}
		i := slices.IndexFunc(waiting, func(x confirm.Waiting) bool { return x.PID == one.cmd.Process.Pid })
		if err := waiting[i].Accept(timeout(t), a["gate"].(string)); err != nil {
			t.Fatal(err)
		}
		w.Requests().Reset()
		w.refused(t, two.call(t, tool, a), required, "Waiting")
		if got := one.call(t, tool, a); got.err != nil {
			t.Error(got)
		}
	})

	t.Run("a folder that others can enter", func(t *testing.T) {
		dir := home(t)
		if err := os.Mkdir(dir+"/run/hecate-mcp", 0o755); err != nil {
			t.Fatal(err)
		}
		s := w.serveIn(t, dir, cluster.Promoter)
		<-s.done
		if err := s.cmd.Wait(); err == nil || !strings.Contains(s.stderr.String(), "0700") {
			t.Errorf("it ran: %v: %s", err, s.stderr.String())
		}
	})

	t.Run("a folder that is opened later", func(t *testing.T) {
		dir := home(t)
		s := w.serveIn(t, dir, cluster.Promoter)
		s.initialize(t, false)
		if err := os.Mkdir(dir+"/run/hecate-mcp", 0o755); err != nil {
			t.Fatal(err)
		}
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, args{"gate": staging}), tools.Refused, "ConfirmationFolder")
	})
}

// TestAbort stops a Passage, and no other one of its name.
func TestAbort(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	const tool = "abort_passage"
	w.stops(t)
	marks := func(t *testing.T, name string) map[string]string {
		var p v1alpha1.Passage
		w.get(t, &p, name)
		if !p.Spec.Abort {
			t.Errorf("%s goes on", name)
		}
		out := maps.Clone(p.Annotations)
		maps.DeleteFunc(out, func(k, _ string) bool { return !strings.HasPrefix(k, "hecate-mcp.dev/") })
		return out
	}

	t.Run("of somebody else's Passage", func(t *testing.T) {
		gate := w.lane(t, nil)
		p := w.passage(t, gate, b.Name, true)
		a := args{"gate": gate}
		q := s.question(t, tool, a)
		if !strings.Contains(q.message, p) || !strings.Contains(q.message, "undoes nothing") {
			t.Errorf("shown: %s", q.message)
		}
		w.Requests().Reset()
		got := s.second(t, tool, a, q.state, yes)
		if got.err != nil {
			t.Fatal(got)
		}
		if n := w.writes() - w.Requests().Count("update", "passages/status"); n != 1 || w.Requests().Count("patch", "passages") != 1 {
			t.Errorf("requests:\n%s", w.Requests())
		}
		m := marks(t, p)
		if m[ops.AnnotationAbortedBy] != "mcp:"+cluster.Promoter || m[ops.AnnotationRequestedBy] != cluster.Promoter || m[ops.AnnotationConfirmedVia] != "elicitation" ||
			m[ops.AnnotationClient] != "pipes 1" || m[ops.AnnotationCallID] == "" {
			t.Errorf("annotations %v", m)
		}
		w.Requests().Reset()
		w.refused(t, s.second(t, tool, a, q.state, yes), expired, "Used")
		w.refused(t, s.first(t, tool, a), tools.Refused, "NothingCrossing")
	})

	t.Run("who asked for the Passage stays", func(t *testing.T) {
		gate := w.lane(t, nil)
		a := args{"gate": gate}
		if got := s.second(t, "promote_bundle", a, s.question(t, "promote_bundle", a).state, yes); got.err != nil {
			t.Fatal(got)
		}
		p := w.passages(t, gate)[0]
		other := w.serve(t, cluster.Admin)
		a = args{"passage": p.Name}
		if got := other.second(t, tool, a, other.question(t, tool, a).state, yes); got.err != nil {
			t.Fatal(got)
		}
		m := marks(t, p.Name)
		for k, v := range p.Annotations {
			if m[k] != v {
				t.Errorf("%s was %q and is %q", k, v, m[k])
			}
		}
		if m[ops.AnnotationAbortedBy] != "mcp:"+cluster.Admin || m[ops.AnnotationRequestedBy+"-abort"] != cluster.Admin {
			t.Errorf("annotations %v", m)
		}
	})

	for name, again := range map[string]bool{"another Passage of the name": true, "a Passage that is gone": false} {
		t.Run(name, func(t *testing.T) {
			gate := w.lane(t, nil)
			p := &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Name: gate + "-1", Labels: map[string]string{v1alpha1.LabelGate: gate}},
				Spec: v1alpha1.PassageSpec{Gate: gate, Bundle: b.Name, Steps: []v1alpha1.Step{{Uses: "http"}}}}
			w.create(t, p.DeepCopy())
			a := args{"passage": p.Name}
			q := s.question(t, tool, a)
			if err := w.admin.Delete(t.Context(), &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: w.ns}}); err != nil {
				t.Fatal(err)
			}
			code := tools.NotFound
			if again {
				code = tools.Drifted
				w.create(t, p.DeepCopy())
			}
			w.Requests().Reset()
			got := s.second(t, tool, a, q.state, yes)
			w.refused(t, got, code, "")
			if again {
				if got.err != nil && (len(got.err.Differences) != 1 || got.err.Differences[0].Field != "uid") {
					t.Errorf("differences %+v", got.err.Differences)
				}
				var now v1alpha1.Passage
				if w.get(t, &now, p.Name); now.Spec.Abort {
					t.Error("it was stopped")
				}
			}
		})
	}

	t.Run("finished meanwhile", func(t *testing.T) {
		p := w.passage(t, w.lane(t, nil), b.Name, true)
		a := args{"passage": p}
		q := s.question(t, tool, a)
		w.finish(t, p, v1alpha1.PassageSucceeded)
		w.Requests().Reset()
		w.refused(t, s.second(t, tool, a, q.state, yes), tools.Refused, "AlreadyFinished")
	})

	t.Run("an automatic Gate starts it again", func(t *testing.T) {
		gate := w.lane(t, func(g *v1alpha1.GateSpec) { g.Auto = true })
		p := w.passage(t, gate, b.Name, true)
		a := args{"passage": p}
		q := s.question(t, tool, a)
		if !strings.Contains(q.message, "WARNING MayRestart: ") {
			t.Errorf("shown: %s", q.message)
		}
		ctx, cancel := context.WithCancel(t.Context())
		restarted := make(chan string, 1)
		go func() { // as the controller does, once the Passage is stopped
			defer close(restarted)
			for ctx.Err() == nil {
				var now v1alpha1.Passage
				if w.admin.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: p}, &now) == nil && !now.Active() {
					restarted <- w.passage(t, gate, b.Name, true)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		got := s.second(t, tool, a, q.state, yes)
		cancel()
		next, _ := got.out["restarted"].(map[string]any)
		if name := <-restarted; got.err != nil || got.out["phase"] != "Aborted" || next["name"] != name || name == "" {
			t.Errorf("restarted as %q: %s", name, got)
		}
	})
}

// stops ends Passages whose abort was asked for, as the controller does, until the
// test ends.
func (w *world) stops(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			var l v1alpha1.PassageList
			// What goes wrong is tried again.
			_ = w.admin.List(ctx, &l, client.InNamespace(w.ns))
			for _, p := range l.Items {
				if p.Active() && p.Spec.Abort {
					p.Status = &v1alpha1.PassageStatus{Phase: v1alpha1.PassageAborted, Message: "aborted"}
					_ = w.admin.Status().Update(ctx, &p)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// TestPoll polls as a user who may update Beacons and not patch them.
func TestPoll(t *testing.T) {
	w := newWorld(t)
	w.allow(t, cluster.OneNamespace, rbacv1.PolicyRule{APIGroups: []string{"hecate.dev"}, Resources: []string{"beacons"}, Verbs: []string{"get", "list", "watch", "update"}})
	s := w.serve(t, cluster.OneNamespace)
	a := args{"beacon": beacon}
	const tool = "poll_beacon"

	// Somebody else's annotation, and a write that comes in between, stay.
	w.beacon(t, func(b *v1alpha1.Beacon) { b.Annotations = map[string]string{"example.com/note": "keep"} })
	q := s.question(t, tool, a)
	w.Inject(t, cluster.Fault{Verb: "update", Resource: "beacons", Times: 2, Status: 409})
	w.Requests().Reset()
	got := s.second(t, tool, a, q.state, yes)
	if got.err != nil {
		t.Fatal(got)
	}
	if n := w.Requests().Count("update", "beacons"); n != 3 || w.writes() != n {
		t.Errorf("requests:\n%s", w.Requests())
	}
	var b v1alpha1.Beacon
	w.get(t, &b, beacon)
	if b.Annotations[ops.AnnotationRequestedAt] == "" || b.Annotations[ops.AnnotationRequestedAt] != got.out["requestedAt"] || b.Annotations["example.com/note"] != "keep" || b.Spec.Watch[0].Image.Repo == "" {
		t.Errorf("the Beacon is %+v, the answer %s", b, got)
	}

	for _, tc := range []struct {
		name   string
		change func(t *testing.T)
		code   tools.Code
		field  string
	}{
		{"edited meanwhile", func(t *testing.T) {
			w.beacon(t, func(b *v1alpha1.Beacon) { b.Spec.Watch[0].Image.Repo = "example.com/other" })
		}, tools.Drifted, "generation"},
		{"suspended meanwhile", func(t *testing.T) { w.beacon(t, func(b *v1alpha1.Beacon) { b.Spec.Suspend = true }) }, tools.Drifted, "suspended"},
		{"gone meanwhile", func(t *testing.T) {
			w.get(t, &b, beacon)
			if err := w.admin.Delete(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}, tools.NotFound, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := s.question(t, tool, a)
			tc.change(t)
			w.Requests().Reset()
			got := s.second(t, tool, a, q.state, yes)
			w.refused(t, got, tc.code, "")
			if tc.field != "" && got.err != nil && !slices.ContainsFunc(got.err.Differences, func(d ops.Difference) bool { return d.Field == tc.field }) {
				t.Errorf("differences %+v", got.err.Differences)
			}
			if tc.field == "suspended" {
				w.beacon(t, func(b *v1alpha1.Beacon) { b.Spec.Suspend = false })
			}
		})
	}

	t.Run("a user who may not", func(t *testing.T) {
		w.create(t, &v1alpha1.Beacon{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: v1alpha1.BeaconSpec{Watch: []v1alpha1.WatchSource{{Image: &v1alpha1.ImageSource{Repo: "example.com/x"}}}}})
		s := w.serve(t, cluster.Promoter)
		a := args{"beacon": "second"}
		got := s.second(t, tool, a, s.question(t, tool, a).state, yes)
		if got.err == nil || got.err.Code != tools.Forbidden {
			t.Errorf("got %s", got)
		}
		if want, got := "asked, confirmed, failed Forbidden", strings.Join(s.events(t), ", "); got != want {
			t.Errorf("the log has %s", got)
		}
		var b v1alpha1.Beacon
		if w.get(t, &b, "second"); len(b.Annotations) > 0 {
			t.Errorf("annotations %v", b.Annotations)
		}
	})
}

func (w *world) beacon(t testing.TB, change func(*v1alpha1.Beacon)) {
	t.Helper()
	var b v1alpha1.Beacon
	w.get(t, &b, beacon)
	change(&b)
	if err := w.admin.Update(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
}

// TestApprove approves with no more than upstream's role gives: the status of
// Bundles, and nothing of Passages.
func TestApprove(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(t)
	o := w.as(t, cluster.Approver)
	q := ops.ApproveQuery{Namespace: w.ns, Gate: production, Bundle: b.Name}
	plan := func(t *testing.T) *ops.ApprovePlan {
		t.Helper()
		p, err := o.PlanApprove(timeout(t), q)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	// A field of a later version of the status, and other marks, are nobody's to lose.
	w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) {
		b.Status.ApprovedFor = []v1alpha1.BundleApproval{{Gate: "elsewhere", Actor: "zoe", At: metav1.Now()}}
	})
	first, second := plan(t), plan(t)

	// A controller rewrites the status all the while.
	ctx, cancel := context.WithCancel(t.Context())
	rewritten := make(chan int)
	go func() {
		n := 0
		defer func() { rewritten <- n }()
		for ctx.Err() == nil {
			var now v1alpha1.Bundle
			if w.admin.Get(ctx, client.ObjectKeyFromObject(b), &now) != nil {
				continue
			}
			now.Status.Cleared = []v1alpha1.BundleMark{{Gate: staging, At: metav1.Now(), Passage: fmt.Sprint(n)}}
			if w.admin.Status().Update(ctx, &now) == nil {
				n++
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	w.Inject(t, cluster.Fault{Verb: "update", Resource: "bundles/status", Times: 3, Status: 409}) // whoever's: both write again
	w.Requests().Reset()
	done, err := o.Approve(timeout(t), first, ops.Actor{Name: cluster.Approver, CallID: "1"})
	cancel()
	if n := <-rewritten; err != nil || n == 0 {
		t.Fatalf("%d rewrites: %v", n, err)
	}
	if r := w.Requests(); r.Count("patch", "")+r.Count("update", "bundles") > 0 {
		t.Errorf("requests:\n%s", r)
	}
	var now v1alpha1.Bundle
	w.get(t, &now, b.Name)
	if got := now.Status.ApprovedFor; len(got) != 2 || got[0].Actor != "zoe" || got[1].Gate != production || got[1].Actor != cluster.Approver || len(now.Status.Cleared) != 1 {
		t.Errorf("the status is %+v after %+v", now.Status, done)
	}

	// The second one is told whose stands, from an old plan and from a new one.
	w.Requests().Reset()
	for _, p := range []*ops.ApprovePlan{second, plan(t)} {
		var refused *ops.RefusedError
		if _, err := o.Approve(timeout(t), p, ops.Actor{Name: "second", CallID: "2"}); !errors.As(err, &refused) || refused.Reason != string(ops.RefusedApproved) || !strings.Contains(refused.Detail, cluster.Approver) {
			t.Errorf("a second approval: %v", err)
		}
	}
	if n := w.writes(); n > 0 {
		t.Errorf("%d writes", n)
	}

	// Two at the same moment: one stands.
	another := w.bundle(t)
	q.Bundle = another.Name
	errs := make(chan error, 4)
	for i := range cap(errs) {
		p := plan(t)
		go func() {
			_, err := o.Approve(timeout(t), p, ops.Actor{Name: fmt.Sprintf("approver-%d", i), CallID: fmt.Sprint(i)})
			errs <- err
		}()
	}
	won := 0
	for range cap(errs) {
		var refused *ops.RefusedError
		if err := <-errs; err == nil {
			won++
		} else if !errors.As(err, &refused) || refused.Reason != string(ops.RefusedApproved) {
			t.Errorf("at the same moment: %v", err)
		}
	}
	if w.get(t, &now, another.Name); won != 1 || len(now.Status.ApprovedFor) != 1 {
		t.Errorf("%d won: %+v", won, now.Status.ApprovedFor)
	}

	for name, tc := range map[string]struct {
		gate, bundle string
		reason       ops.RefusalReason
	}{
		"a Gate that asks for none":      {staging, b.Name, ops.RefusedNotNeeded},
		"a Bundle that is not admitted":  {production, w.bundleOf(t, "foreign-1", "foreign"), ops.RefusedNotAdmitted},
		"a Bundle that is approved here": {production, b.Name, ops.RefusedApproved},
	} {
		t.Run(name, func(t *testing.T) {
			q.Gate, q.Bundle = tc.gate, tc.bundle
			w.Requests().Reset()
			p := plan(t)
			if r := p.Refused(); r == nil || r.Reason != string(tc.reason) {
				t.Errorf("planned: %v", r)
			}
			var refused *ops.RefusedError
			if _, err := o.Approve(timeout(t), p, ops.Actor{Name: "x"}); !errors.As(err, &refused) || w.writes() > 0 {
				t.Errorf("approved: %v", err)
			}
		})
	}

	t.Run("the Bundle is another one", func(t *testing.T) {
		c := w.bundle(t)
		q.Gate, q.Bundle = production, c.Name
		p := plan(t)
		if err := w.admin.Delete(t.Context(), c.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		w.create(t, &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: c.Labels}, Spec: c.Spec})
		w.Requests().Reset()
		var drifted *ops.DriftedError
		if _, err := o.Approve(timeout(t), p, ops.Actor{Name: "x"}); !errors.As(err, &drifted) || w.writes() > 0 {
			t.Errorf("got %v", err)
		}
	})
}

// TestWriteLog holds what the log has of each way in which a write can end.
func TestWriteLog(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	const tool = "promote_bundle"
	var want []string
	step := func(events ...string) {
		t.Helper()
		want = append(want, events...)
		if got := s.events(t); !slices.Equal(got, want) {
			t.Fatalf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	a := args{"gate": staging, "wait": "1s"}
	q := s.question(t, tool, a)
	step("asked")
	if got := s.second(t, tool, a, q.state, yes); got.err != nil {
		t.Fatal(got)
	}
	step("confirmed", "done")
	s.second(t, tool, a, q.state, yes)
	step("refused ConfirmationExpired Used")
	s.first(t, tool, a)
	step("asked", "refused Refused CrossingInProgress")
	a = args{"gate": w.lane(t, nil)}
	s.second(t, tool, a, s.question(t, tool, a).state, answered(map[string]any{"action": "decline"}))
	step("asked", "refused ConfirmationDeclined Declined")
	q = s.question(t, tool, a)
	w.gate(t, a["gate"].(string), func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[0].Uses = "http" })
	s.second(t, tool, a, q.state, yes)
	step("asked", "confirmed", "refused Drifted")
	s.second(t, tool, a, "", yes)
	step("refused ConfirmationExpired Unasked")
	// What is no write: a question that is wrong, and a read.
	s.first(t, tool, args{"gate": "nowhere"})
	s.first(t, "list_gates", args{})
	step()

	raw, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	plans := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		for k := range e {
			if !slices.Contains([]string{"time", "event", "tool", "callId", "principal", "actor", "client", "confirmedVia", "object", "plan", "title", "code", "reason", "message"}, k) {
				t.Errorf("%s is in the log: %s", k, line)
			}
		}
		if e["principal"] != cluster.Promoter || e["tool"] != tool {
			t.Errorf("of nobody: %s", line)
		}
		if e["event"] == "done" && (e["callId"] == nil || e["actor"] != "mcp:"+cluster.Promoter || e["confirmedVia"] != "elicitation" || e["object"] != "Gate/"+w.ns+"/"+staging || e["plan"] == nil) {
			t.Errorf("done: %s", line)
		}
		if p, ok := e["plan"].(string); ok {
			plans[p] = true
		}
		// An answer that does not count is about no plan that is still there.
		if e["code"] != "ConfirmationExpired" && (e["plan"] == nil || e["title"] == nil || e["object"] == nil) {
			t.Errorf("of no plan: %s", line)
		}
	}
	if len(plans) < 3 {
		t.Errorf("plans %v", plans)
	}
	p := w.passages(t, staging)
	if len(p) != 1 || !strings.Contains(string(raw), p[0].Annotations[ops.AnnotationCallID]) {
		t.Errorf("Passages %+v", p)
	}
	for _, secret := range []string{"token-of-", q.state, `"wait"`, `"arguments"`} {
		if strings.Contains(string(raw), secret) || strings.Contains(s.stderr.String(), secret) {
			t.Errorf("%q is in the log:\n%s\n%s", secret, raw, s.stderr.String())
		}
	}
}

// TestWriteLogFull makes the log one to which nothing more can be written: nothing
// is done unrecorded.
func TestWriteLogFull(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	dir := home(t)
	fill(t, dir+"/writes.jsonl")
	s := w.serveIn(t, dir, cluster.Promoter)
	s.initialize(t, true)
	s.person(accepts)
	w.Requests().Reset()
	got := s.call(t, "promote_bundle", args{"gate": staging})
	w.refused(t, got, tools.Unavailable, "WriteLogFailed")
	w.refused(t, s.first(t, "promote_bundle", args{"gate": staging}), tools.Unavailable, "WriteLogFailed")
	if n := len(s.questions()); n > 0 {
		t.Errorf("a person was asked %d times", n)
	}
	if got := s.call(t, "list_gates", args{}); got.err != nil {
		t.Errorf("a read: %s", got)
	}

	// It is full when the person has answered: confirmed and not done.
	dir = home(t)
	s = w.serveIn(t, dir, cluster.Promoter)
	s.initialize(t, true)
	s.person(func(p json.RawMessage) any {
		fill(t, s.log)
		w.Requests().Reset()
		return accepts(p)
	})
	w.refused(t, s.call(t, "promote_bundle", args{"gate": staging}), tools.Unavailable, "WriteLogFailed")
	if n := len(w.all(t)); n > 0 {
		t.Errorf("%d Passages", n)
	}

	// A log that is no regular file is none.
	for name, path := range map[string]string{"a folder": dir, "a device": "/dev/null"} {
		s := w.start(t, home(t), "serve", "--allow-writes", "--kubeconfig", w.Kubeconfig(t, cluster.Promoter, w.ns), "--write-log", path)
		<-s.done
		if err := s.cmd.Wait(); err == nil || !strings.Contains(s.stderr.String(), "log of writes") {
			t.Errorf("%s: %v: %s", name, err, s.stderr.String())
		}
	}
}

// fill makes a file as long as the file system allows, without its blocks: whoever
// appends to it is told that it is too large. A file that may
// only be read would not stop root.
func fill(t testing.TB, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	most := int64(0)
	for step := int64(1) << 62; step > 0; step >>= 1 {
		if f.Truncate(most+step) == nil {
			most += step
		}
	}
	if err := f.Truncate(most); err != nil {
		t.Fatal(err)
	}
}
