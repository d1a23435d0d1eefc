package fidestest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/mail"
	"slices"
	"strconv"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// most is how many entries a search answers at most.
const most = 100

func (s *Server) searchArtifacts(r *http.Request, _ caller) (int, any, error) {
	q := r.URL.Query()
	out := []map[string]any{}
	for _, a := range s.artifactsNewestFirst() {
		commit := ""
		if t, err := s.trail(a.Trail); err == nil {
			commit = t.Commit
		}
		if !strings.HasPrefix(a.SHA256, q.Get("sha")) || !strings.Contains(a.Name, q.Get("name")) ||
			(q.Get("commit") != "" && q.Get("commit") != commit) || len(out) == most {
			continue
		}
		hit := map[string]any{"sha256": a.SHA256, "name": a.Name, "type": a.kind(), "created_at": a.At, "git_commit": commit}
		if !s.state.Older {
			hit["trail_id"] = a.trailID()
		}
		out = append(out, hit)
	}
	return http.StatusOK, out, nil
}

func (s *Server) artifactsNewestFirst() []Artifact {
	out := slices.Clone(s.state.Artifacts)
	slices.SortStableFunc(out, func(a, b Artifact) int { return b.At.Compare(a.At) })
	return out
}

func (a Artifact) kind() string { return cmp.Or(a.Type, "container-image") }

func (a Artifact) trailID() *string {
	if a.Trail == "" {
		return nil
	}
	return &a.Trail
}

func (s *Server) listArtifacts(*http.Request, caller) (int, any, error) {
	if !s.state.ListsArtifacts && len(s.state.Artifacts) > 0 {
		return 0, nil, errInternal
	}
	out := []fides.Artifact{}
	for _, a := range s.artifactsNewestFirst() {
		entry := fides.Artifact{SHA256: a.SHA256, OrgID: organisation, TrailID: a.trailID(), Name: a.Name, Type: a.kind(),
			Tags: map[string]any{}, CreatedAt: a.At, SBOMStatus: cmp.Or(a.SBOMStatus, "Pending"), SBOM: a.SBOM}
		if entry.SBOM == nil {
			entry.SBOM = []fides.Component{}
		}
		if t, err := s.trail(a.Trail); err == nil {
			entry.TrailName = t.Name
		}
		out = append(out, entry)
	}
	return http.StatusOK, out, nil
}

func (s *Server) reportArtifact(r *http.Request, _ caller) (int, any, error) {
	var in fides.NewArtifact
	if err := body(r, &in); err != nil {
		return 0, nil, err
	}
	if in.TrailID != "" {
		if _, err := s.trail(in.TrailID); err != nil {
			return 0, nil, err
		}
	}
	a := s.artifact(in.SHA256)
	if a == nil {
		s.state.Artifacts = append(s.state.Artifacts, Artifact{SHA256: in.SHA256, At: s.Now()})
		a = &s.state.Artifacts[len(s.state.Artifacts)-1]
	}
	a.Name, a.Type, a.Trail = in.Name, in.Type, in.TrailID
	s.writes++
	return http.StatusCreated, fides.ReportedArtifact{SHA256: a.SHA256, OrgID: organisation, TrailID: a.trailID(),
		Name: a.Name, Type: a.kind(), CreatedAt: a.At}, nil
}

func (s *Server) searchAttestations(r *http.Request, _ caller) (int, any, error) {
	q := r.URL.Query()
	if q.Get("trail") != "" && !uuidPattern.MatchString(q.Get("trail")) {
		return 0, nil, refused{http.StatusBadRequest, "trail must be a UUID"}
	}
	out := []fides.AttestationHit{}
	for _, t := range s.state.Trails {
		if q.Get("trail") != "" && q.Get("trail") != t.ID {
			continue
		}
		for _, a := range t.Attestations {
			if (q.Get("type") != "" && q.Get("type") != a.Type) || (q.Get("sha") != "" && q.Get("sha") != a.SHA256) ||
				(q.Get("compliant") != "" && q.Get("compliant") != strconv.FormatBool(a.Compliant)) {
				continue
			}
			out = append(out, fides.AttestationHit{ID: a.ID, Name: a.Name, TypeName: a.Type, IsCompliant: a.Compliant, TrailID: t.ID, CreatedAt: a.At})
		}
	}
	// Entries of one moment: the later appended is the newer one.
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b fides.AttestationHit) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return http.StatusOK, out[:min(len(out), most)], nil
}

func (s *Server) attestation(r *http.Request, _ caller) (int, any, error) {
	id := r.PathValue("id")
	if !uuidPattern.MatchString(id) {
		return 0, nil, refused{http.StatusBadRequest, "invalid attestation id"}
	}
	for _, t := range s.state.Trails {
		for _, a := range t.Attestations {
			if a.ID == id {
				hash := sha256.Sum256([]byte(t.ID + a.ID + a.Type + string(a.Payload)))
				return http.StatusOK, fides.Attestation{ID: a.ID, Name: a.Name, TypeName: a.Type, IsCompliant: a.Compliant,
					Payload: a.Payload, SignedBy: a.SignedBy, ContentHash: hex.EncodeToString(hash[:]),
					CreatedAt: a.At, TrailID: t.ID, ArtifactSHA256: a.SHA256}, nil
			}
		}
	}
	return 0, nil, refused{http.StatusNotFound, "attestation not found"}
}

func (s *Server) attest(r *http.Request, _ caller) (int, any, error) {
	var in fides.NewAttestation
	if err := body(r, &in); err != nil {
		return 0, nil, err
	}
	t, err := s.trail(in.TrailID)
	if err != nil {
		return 0, nil, err
	}
	if in.ArtifactSHA256 != "" && s.artifact(in.ArtifactSHA256) == nil {
		return 0, nil, errInternal // a foreign key that the server does not check first
	}
	if !json.Valid([]byte(in.Payload)) {
		return 0, nil, errBadBody
	}
	a := s.append(t, Attestation{Name: in.Name, Type: in.TypeName, Compliant: true, Payload: json.RawMessage(in.Payload), SignedBy: in.SignedBy, SHA256: in.ArtifactSHA256})
	return http.StatusCreated, fides.StoredAttestation{ID: a.ID, TrailID: t.ID, ArtifactSHA256: a.SHA256, Name: a.Name,
		TypeName: a.Type, Payload: in.Payload, IsCompliant: true, SignedBy: a.SignedBy, CreatedAt: a.At}, nil
}

func (s *Server) listApprovals(r *http.Request, _ caller) (int, any, error) {
	t, err := s.trail(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	out := []fides.Approval{}
	for _, a := range t.Approvals {
		out = append(out, fides.Approval{ApprovedBy: a.By, Kind: a.Kind, Reason: a.Reason, Role: a.Role, CreatedAt: a.At, DelegatedBy: a.DelegatedBy})
	}
	slices.SortStableFunc(out, func(a, b fides.Approval) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return http.StatusOK, out, nil
}

func (s *Server) approve(r *http.Request, who caller) (int, any, error) {
	t, err := s.trail(r.PathValue("id"))
	if err == errTrail {
		err = errInternal // a foreign key that the server does not check first
	}
	if err != nil {
		return 0, nil, err
	}
	var in fides.ApprovalRequest
	if err := body(r, &in); err != nil {
		return 0, nil, err
	}
	if in.Role != fides.RoleApprover && in.Role != fides.RoleDeployer {
		return 0, nil, refused{http.StatusBadRequest, "role must be 'approver' or 'deployer'"}
	}
	row := Approval{By: who.identity, Kind: who.kind, Role: in.Role, Reason: in.Reason, At: s.Now()}
	if in.OnBehalfOf != "" && s.state.Delegation && who.delegates {
		if at, err := mail.ParseAddress(in.OnBehalfOf); err != nil || at.Address != in.OnBehalfOf || strings.Contains(in.OnBehalfOf, ":") {
			return 0, nil, refused{http.StatusBadRequest, "on_behalf_of must be a valid email identity"}
		}
		if !slices.Contains(s.state.Users, in.OnBehalfOf) {
			return 0, nil, refused{http.StatusBadRequest, "on_behalf_of does not match a known user in the organization"}
		}
		row.By, row.Kind, row.DelegatedBy = in.OnBehalfOf, fides.KindSession, serviceIdentity
	}
	i := slices.IndexFunc(t.Approvals, func(a Approval) bool { return a.By == row.By })
	if i >= 0 {
		row.Kind = t.Approvals[i].Kind // the first kind stays
		t.Approvals[i] = row
	} else {
		t.Approvals = append(t.Approvals, row)
	}
	s.writes++
	duties := t.duties()
	s.chainDuties(t)
	return http.StatusCreated, fides.ApprovalResult{Status: "approved", ApprovedBy: row.By, Kind: row.Kind, Role: row.Role,
		DelegatedBy: row.DelegatedBy, SegregationOfDuties: &duties}, nil
}

func (s *Server) allowlist(r *http.Request, _ caller) (int, any, error) {
	e, err := s.environment(r.PathValue("env"))
	if err != nil {
		return 0, nil, err
	}
	sha := r.URL.Query().Get("sha")
	if sha != "" {
		return http.StatusOK, fides.AllowlistVerdict{EnvironmentID: e.ID, ArtifactSHA256: sha,
			Approved: slices.ContainsFunc(e.Allowlist, func(a AllowedImage) bool { return a.SHA256 == sha })}, nil
	}
	out := []fides.AllowlistEntry{}
	for _, a := range e.Allowlist {
		out = append(out, fides.AllowlistEntry{ArtifactSHA256: a.SHA256, ApprovedBy: a.ApprovedBy, Reason: a.Reason, CreatedAt: a.At})
	}
	return http.StatusOK, out, nil
}

func (s *Server) allow(r *http.Request, who caller) (int, any, error) {
	e, err := s.environment(r.PathValue("env"))
	if err != nil {
		return 0, nil, err
	}
	var in struct {
		SHA256 string `json:"artifact_sha256"`
		Reason string `json:"reason"`
	}
	if err := body(r, &in); err != nil {
		return 0, nil, err
	}
	if in.Reason == "" {
		return 0, nil, refused{http.StatusBadRequest, "reason is required: an allowlist entry is an accepted risk and must say why"}
	}
	e.Allowlist = append(e.Allowlist, AllowedImage{SHA256: in.SHA256, ApprovedBy: who.identity, Reason: in.Reason, At: s.Now()})
	s.writes++
	return http.StatusCreated, map[string]string{"status": "approved"}, nil
}
