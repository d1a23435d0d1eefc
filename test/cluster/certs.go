package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificates are what the API server and the proxy before it show: both
// the same, for 127.0.0.1 and localhost, signed by an authority made for this run.
type certificates struct {
	caPEM                             []byte
	pool                              *x509.CertPool // the authority
	pair                              tls.Certificate
	certFile, keyFile, accountKeyFile string
}

// writeCertificates makes them, valid for a day, and writes the server's files to dir.
func writeCertificates(dir string) (*certificates, error) {
	c := &certificates{
		pool:           x509.NewCertPool(),
		certFile:       filepath.Join(dir, "server.crt"),
		keyFile:        filepath.Join(dir, "server.key"),
		accountKeyFile: filepath.Join(dir, "service-accounts.key"),
	}
	if err := c.make(); err != nil {
		return nil, fmt.Errorf("cannot make certificates: %w", err)
	}
	return c, nil
}

func (c *certificates) make() error {
	caKey, _, err := newKey()
	if err != nil {
		return err
	}
	serverKey, serverKeyPEM, err := newKey()
	if err != nil {
		return err
	}
	_, accountKeyPEM, err := newKey()
	if err != nil {
		return err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "test API server"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, ca, serverKey.Public(), caKey)
	if err != nil {
		return err
	}
	c.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	c.pool.AppendCertsFromPEM(c.caPEM)
	serverPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serverDER})
	if c.pair, err = tls.X509KeyPair(serverPEM, serverKeyPEM); err != nil {
		return err
	}
	for file, data := range map[string][]byte{c.certFile: serverPEM, c.keyFile: serverKeyPEM, c.accountKeyFile: accountKeyPEM} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// newKey returns a private key, and the same as PEM.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	// The form in which kube-apiserver finds the public key, too.
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
